-- A ledger of version 1 on PostgreSQL, as the program of that version left it (pg_dump, without schema and settings).
CREATE TABLE accounts (
    account_id text NOT NULL,
    kind text NOT NULL,
    credit_limit bigint NOT NULL,
    opened_at bigint NOT NULL,
    closed_at bigint,
    posted bigint DEFAULT '0'::bigint NOT NULL,
    reserved bigint DEFAULT '0'::bigint NOT NULL,
    CONSTRAINT accounts_credit_limit_check CHECK ((credit_limit >= 0)),
    CONSTRAINT accounts_reserved_check CHECK ((reserved >= 0)),
    CONSTRAINT closed_is_empty CHECK (((closed_at IS NULL) OR ((posted = 0) AND (reserved = 0)))),
    CONSTRAINT within_overdraft CHECK ((((posted - reserved) + credit_limit) >= 0))
);
CREATE TABLE certificates (
    account_id text NOT NULL,
    pem text NOT NULL
);
CREATE TABLE entries (
    entry_number bigint NOT NULL,
    action text NOT NULL,
    account_id text,
    transfer_id text,
    agreement_id text
);
CREATE SEQUENCE entries_entry_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE entries_entry_number_seq OWNED BY entries.entry_number;
CREATE TABLE ledger_version (
    version integer NOT NULL
);
CREATE SEQUENCE ledger_version_version_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE ledger_version_version_seq OWNED BY ledger_version.version;
CREATE TABLE nonces (
    signer text NOT NULL,
    nonce text NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE refusals (
    agreement_id text NOT NULL,
    code text NOT NULL,
    reason text NOT NULL,
    refused_at bigint NOT NULL
);
CREATE TABLE transfers (
    transfer_id text NOT NULL,
    debit_account text NOT NULL,
    credit_account text NOT NULL,
    amount bigint NOT NULL,
    agreement_id text NOT NULL,
    kind text NOT NULL,
    entered_at bigint NOT NULL,
    posted_at bigint,
    voided_at bigint,
    reverses text,
    memo text NOT NULL,
    CONSTRAINT posted_or_voided CHECK (((posted_at IS NULL) OR (voided_at IS NULL))),
    CONSTRAINT refunds_reverse CHECK (((kind = 'refund'::text) = (reverses IS NOT NULL))),
    CONSTRAINT transfers_amount_check CHECK ((amount > 0)),
    CONSTRAINT two_accounts CHECK ((debit_account <> credit_account))
);
ALTER TABLE ONLY entries ALTER COLUMN entry_number SET DEFAULT nextval('entries_entry_number_seq'::regclass);
ALTER TABLE ONLY ledger_version ALTER COLUMN version SET DEFAULT nextval('ledger_version_version_seq'::regclass);
INSERT INTO accounts VALUES ('gone', 'user', 0, 2, 3, 0, 0);
INSERT INTO accounts VALUES ('market', 'market', 1000000000000000000, 0, NULL, -10000, 0);
INSERT INTO accounts VALUES ('hector', 'resource', 0, 1, NULL, 800, 0);
INSERT INTO accounts VALUES ('kelvin', 'resource', 0, 1, NULL, 2300, 0);
INSERT INTO accounts VALUES ('alice', 'user', 1000, 1, NULL, 6900, 1300);
INSERT INTO certificates VALUES ('alice', '-----BEGIN CERTIFICATE-----
MIIB
');
INSERT INTO entries VALUES (1, 'opened', 'market', NULL, NULL);
INSERT INTO entries VALUES (2, 'opened', 'alice', NULL, NULL);
INSERT INTO entries VALUES (3, 'opened', 'hector', NULL, NULL);
INSERT INTO entries VALUES (4, 'opened', 'kelvin', NULL, NULL);
INSERT INTO entries VALUES (5, 'opened', 'gone', NULL, NULL);
INSERT INTO entries VALUES (6, 'closed', 'gone', NULL, NULL);
INSERT INTO entries VALUES (7, 'entered', NULL, 'deposit:d-1', NULL);
INSERT INTO entries VALUES (8, 'entered', NULL, 'payment:a-1', NULL);
INSERT INTO entries VALUES (9, 'entered', NULL, 'payment:a-2', NULL);
INSERT INTO entries VALUES (10, 'entered', NULL, 'refund:a-2', NULL);
INSERT INTO entries VALUES (11, 'entered', NULL, 'payment:a-3', NULL);
INSERT INTO entries VALUES (12, 'settled', NULL, 'payment:a-3', NULL);
INSERT INTO entries VALUES (13, 'entered', NULL, 'payment:a-4', NULL);
INSERT INTO entries VALUES (14, 'settled', NULL, 'payment:a-4', NULL);
INSERT INTO entries VALUES (15, 'refused', NULL, NULL, 'a-5');
INSERT INTO entries VALUES (16, 'entered', NULL, 'payment:a-6', NULL);
INSERT INTO entries VALUES (17, 'entered', NULL, 'payment:a-7', NULL);
INSERT INTO entries VALUES (18, 'entered', NULL, 'payment:a-8', NULL);
INSERT INTO ledger_version VALUES (1);
INSERT INTO nonces VALUES ('alice', 'n-1', 1000000000000000);
INSERT INTO refusals VALUES ('a-5', 'bad_signature', 'the user''s signature is broken', 27);
INSERT INTO transfers VALUES ('deposit:d-1', 'market', 'alice', 10000, 'd-1', 'deposit', 10, 10, NULL, NULL, 'start');
INSERT INTO transfers VALUES ('payment:a-1', 'alice', 'hector', 2500, 'a-1', 'payment', 20, 20, NULL, NULL, 'two units');
INSERT INTO transfers VALUES ('payment:a-2', 'alice', 'kelvin', 500, 'a-2', 'payment', 21, 21, NULL, NULL, '');
INSERT INTO transfers VALUES ('refund:a-2', 'kelvin', 'alice', 200, 'a-2', 'refund', 22, 22, NULL, 'payment:a-2', 'cancelled');
INSERT INTO transfers VALUES ('payment:a-3', 'alice', 'hector', 300, 'a-3', 'payment', 23, 24, NULL, NULL, '');
INSERT INTO transfers VALUES ('payment:a-4', 'alice', 'hector', 400, 'a-4', 'payment', 25, NULL, 26, NULL, '');
INSERT INTO transfers VALUES ('payment:a-6', 'hector', 'kelvin', 2000, 'a-6', 'payment', 28, 28, NULL, NULL, '');
INSERT INTO transfers VALUES ('payment:a-7', 'alice', 'hector', 600, 'a-7', 'payment', 29, NULL, NULL, NULL, '');
INSERT INTO transfers VALUES ('payment:a-8', 'alice', 'kelvin', 700, 'a-8', 'payment', 30, NULL, NULL, NULL, '');
SELECT pg_catalog.setval('entries_entry_number_seq', 18, true);
SELECT pg_catalog.setval('ledger_version_version_seq', 1, false);
ALTER TABLE ONLY accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (account_id);
ALTER TABLE ONLY certificates
    ADD CONSTRAINT certificates_pkey PRIMARY KEY (account_id);
ALTER TABLE ONLY entries
    ADD CONSTRAINT entries_pkey PRIMARY KEY (entry_number);
ALTER TABLE ONLY ledger_version
    ADD CONSTRAINT ledger_version_pkey PRIMARY KEY (version);
ALTER TABLE ONLY nonces
    ADD CONSTRAINT nonces_pkey PRIMARY KEY (signer, nonce);
ALTER TABLE ONLY entries
    ADD CONSTRAINT once_for_a_transfer UNIQUE (transfer_id, action);
ALTER TABLE ONLY entries
    ADD CONSTRAINT once_for_an_account UNIQUE (account_id, action);
ALTER TABLE ONLY entries
    ADD CONSTRAINT once_for_an_agreement UNIQUE (agreement_id, action);
ALTER TABLE ONLY transfers
    ADD CONSTRAINT one_transfer_for_a_key UNIQUE (agreement_id, kind);
ALTER TABLE ONLY refusals
    ADD CONSTRAINT refusals_pkey PRIMARY KEY (agreement_id);
ALTER TABLE ONLY transfers
    ADD CONSTRAINT transfers_pkey PRIMARY KEY (transfer_id);
ALTER TABLE ONLY transfers
    ADD CONSTRAINT transfers_reverses_key UNIQUE (reverses);
CREATE INDEX ix_nonces_expires_at ON nonces USING btree (expires_at);
CREATE INDEX transfers_by_credit_account ON transfers USING btree (credit_account, posted_at);
CREATE INDEX transfers_by_debit_account ON transfers USING btree (debit_account, posted_at);
ALTER TABLE ONLY certificates
    ADD CONSTRAINT certificates_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(account_id);
ALTER TABLE ONLY entries
    ADD CONSTRAINT entries_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(account_id);
ALTER TABLE ONLY entries
    ADD CONSTRAINT entries_agreement_id_fkey FOREIGN KEY (agreement_id) REFERENCES refusals(agreement_id);
ALTER TABLE ONLY entries
    ADD CONSTRAINT entries_transfer_id_fkey FOREIGN KEY (transfer_id) REFERENCES transfers(transfer_id);
ALTER TABLE ONLY transfers
    ADD CONSTRAINT transfers_credit_account_fkey FOREIGN KEY (credit_account) REFERENCES accounts(account_id);
ALTER TABLE ONLY transfers
    ADD CONSTRAINT transfers_debit_account_fkey FOREIGN KEY (debit_account) REFERENCES accounts(account_id);
ALTER TABLE ONLY transfers
    ADD CONSTRAINT transfers_reverses_fkey FOREIGN KEY (reverses) REFERENCES transfers(transfer_id);
