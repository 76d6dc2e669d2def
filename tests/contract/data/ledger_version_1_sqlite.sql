-- A ledger of version 1 on SQLite, as the program of that version left it (dump of the file).
BEGIN TRANSACTION;
CREATE TABLE accounts (
	account_id TEXT NOT NULL,
	kind TEXT NOT NULL,
	credit_limit INTEGER NOT NULL CHECK (credit_limit >= 0),
	opened_at INTEGER NOT NULL,
	closed_at INTEGER,
	posted INTEGER DEFAULT '0' NOT NULL,
	reserved INTEGER DEFAULT '0' NOT NULL CHECK (reserved >= 0),
	PRIMARY KEY (account_id),
	CONSTRAINT within_overdraft CHECK (posted - reserved + credit_limit >= 0),
	CONSTRAINT closed_is_empty CHECK (closed_at IS NULL OR (posted = 0 AND reserved = 0))
);
INSERT INTO "accounts" VALUES('market','market',1000000000000000000,0,NULL,-10000,0);
INSERT INTO "accounts" VALUES('alice','user',1000,1,NULL,6900,1300);
INSERT INTO "accounts" VALUES('hector','resource',0,1,NULL,800,0);
INSERT INTO "accounts" VALUES('kelvin','resource',0,1,NULL,2300,0);
INSERT INTO "accounts" VALUES('gone','user',0,2,3,0,0);
CREATE TABLE certificates (
	account_id TEXT NOT NULL,
	pem TEXT NOT NULL,
	PRIMARY KEY (account_id),
	FOREIGN KEY(account_id) REFERENCES accounts (account_id)
);
INSERT INTO "certificates" VALUES('alice','-----BEGIN CERTIFICATE-----
MIIB
-----END CERTIFICATE-----
');
CREATE TABLE entries (
	entry_number INTEGER NOT NULL,
	action TEXT NOT NULL,
	account_id TEXT,
	transfer_id TEXT,
	agreement_id TEXT,
	PRIMARY KEY (entry_number),
	CONSTRAINT once_for_an_account UNIQUE (account_id, action),
	CONSTRAINT once_for_a_transfer UNIQUE (transfer_id, action),
	CONSTRAINT once_for_an_agreement UNIQUE (agreement_id, action),
	FOREIGN KEY(account_id) REFERENCES accounts (account_id),
	FOREIGN KEY(transfer_id) REFERENCES transfers (transfer_id),
	FOREIGN KEY(agreement_id) REFERENCES refusals (agreement_id)
);
INSERT INTO "entries" VALUES(1,'opened','market',NULL,NULL);
INSERT INTO "entries" VALUES(2,'opened','alice',NULL,NULL);
INSERT INTO "entries" VALUES(3,'opened','hector',NULL,NULL);
INSERT INTO "entries" VALUES(4,'opened','kelvin',NULL,NULL);
INSERT INTO "entries" VALUES(5,'opened','gone',NULL,NULL);
INSERT INTO "entries" VALUES(6,'closed','gone',NULL,NULL);
INSERT INTO "entries" VALUES(7,'entered',NULL,'deposit:d-1',NULL);
INSERT INTO "entries" VALUES(8,'entered',NULL,'payment:a-1',NULL);
INSERT INTO "entries" VALUES(9,'entered',NULL,'payment:a-2',NULL);
INSERT INTO "entries" VALUES(10,'entered',NULL,'refund:a-2',NULL);
INSERT INTO "entries" VALUES(11,'entered',NULL,'payment:a-3',NULL);
INSERT INTO "entries" VALUES(12,'settled',NULL,'payment:a-3',NULL);
INSERT INTO "entries" VALUES(13,'entered',NULL,'payment:a-4',NULL);
INSERT INTO "entries" VALUES(14,'settled',NULL,'payment:a-4',NULL);
INSERT INTO "entries" VALUES(15,'refused',NULL,NULL,'a-5');
INSERT INTO "entries" VALUES(16,'entered',NULL,'payment:a-6',NULL);
INSERT INTO "entries" VALUES(17,'entered',NULL,'payment:a-7',NULL);
INSERT INTO "entries" VALUES(18,'entered',NULL,'payment:a-8',NULL);
CREATE TABLE ledger_version (
	version INTEGER NOT NULL,
	PRIMARY KEY (version)
);
INSERT INTO "ledger_version" VALUES(1);
CREATE TABLE nonces (
	signer TEXT NOT NULL,
	nonce TEXT NOT NULL,
	expires_at INTEGER NOT NULL,
	PRIMARY KEY (signer, nonce)
);
INSERT INTO "nonces" VALUES('alice','n-1',1000000000000000);
CREATE TABLE refusals (
	agreement_id TEXT NOT NULL,
	code TEXT NOT NULL,
	reason TEXT NOT NULL,
	refused_at INTEGER NOT NULL,
	PRIMARY KEY (agreement_id)
);
INSERT INTO "refusals" VALUES('a-5','bad_signature','the user''s signature is broken',27);
CREATE TABLE transfers (
	transfer_id TEXT NOT NULL,
	debit_account TEXT NOT NULL,
	credit_account TEXT NOT NULL,
	amount INTEGER NOT NULL CHECK (amount > 0),
	agreement_id TEXT NOT NULL,
	kind TEXT NOT NULL,
	entered_at INTEGER NOT NULL,
	posted_at INTEGER,
	voided_at INTEGER,
	reverses TEXT,
	memo TEXT NOT NULL,
	PRIMARY KEY (transfer_id),
	CONSTRAINT one_transfer_for_a_key UNIQUE (agreement_id, kind),
	CONSTRAINT two_accounts CHECK (debit_account <> credit_account),
	CONSTRAINT posted_or_voided CHECK (posted_at IS NULL OR voided_at IS NULL),
	CONSTRAINT refunds_reverse CHECK ((kind = 'refund') = (reverses IS NOT NULL)),
	FOREIGN KEY(debit_account) REFERENCES accounts (account_id),
	FOREIGN KEY(credit_account) REFERENCES accounts (account_id),
	UNIQUE (reverses),
	FOREIGN KEY(reverses) REFERENCES transfers (transfer_id)
);
INSERT INTO "transfers" VALUES('deposit:d-1','market','alice',10000,'d-1','deposit',10,10,NULL,NULL,'start');
INSERT INTO "transfers" VALUES('payment:a-1','alice','hector',2500,'a-1','payment',20,20,NULL,NULL,'two units');
INSERT INTO "transfers" VALUES('payment:a-2','alice','kelvin',500,'a-2','payment',21,21,NULL,NULL,'');
INSERT INTO "transfers" VALUES('refund:a-2','kelvin','alice',200,'a-2','refund',22,22,NULL,'payment:a-2','cancelled');
INSERT INTO "transfers" VALUES('payment:a-3','alice','hector',300,'a-3','payment',23,24,NULL,NULL,'');
INSERT INTO "transfers" VALUES('payment:a-4','alice','hector',400,'a-4','payment',25,NULL,26,NULL,'');
INSERT INTO "transfers" VALUES('payment:a-6','hector','kelvin',2000,'a-6','payment',28,28,NULL,NULL,'');
INSERT INTO "transfers" VALUES('payment:a-7','alice','hector',600,'a-7','payment',29,NULL,NULL,NULL,'');
INSERT INTO "transfers" VALUES('payment:a-8','alice','kelvin',700,'a-8','payment',30,NULL,NULL,NULL,'');
CREATE INDEX ix_nonces_expires_at ON nonces (expires_at);
CREATE INDEX transfers_by_credit_account ON transfers (credit_account, posted_at);
CREATE INDEX transfers_by_debit_account ON transfers (debit_account, posted_at);
COMMIT;
