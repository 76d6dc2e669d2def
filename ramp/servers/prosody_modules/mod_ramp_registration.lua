-- Registration of accounts by their owners with tokens of the market's keeper (XEP-0445 before XEP-0077). There is no
-- registration without a token. The rules are those of the embedded server (ramp/servers/accounts.py). A token
-- is valid for one name, once, until it expires. Only digests of tokens are stored. An account exists as long as its token is
-- the current one for its name. (mod_invites_register does not bind a token to a name.)
--     prosodyctl --config FILE mod_ramp_registration DOMAIN < accounts.json
-- sets tokens and passwords, whether the server runs or not. Standard input is a JSON object, so no password appears on a
-- command line. It maps the name of an account to its password, to its token, { "digest": SHA-256 in hexadecimal, "ends_at":
-- microseconds }, or to null to close the account.
local equals = require "util.hashes".equals;
local sha256 = require "util.hashes".sha256;
local st = require "util.stanza";
local time = require "util.time";
local usermanager = require "core.usermanager";

local xmlns_stream, xmlns_token, xmlns_register = "urn:xmpp:ibr-token:0", "urn:xmpp:pars:0", "jabber:iq:register";
local token_length_max, password_length_max = 256, 1023;
local refusals_max = 3; -- refusals that end a connection
local pause_s = 60; -- between two log lines about refusals
local look_s = 2; -- between two searches for sessions of closed accounts

-- The current tokens by name, under the host; only the command below writes them. The registered accounts, one file each, with
-- the digest of the token. The file is written before the account is created, so a crash in between does no harm.
local given_store, made_store;

local function open_stores()
	given_store = module:open_store("ramp_account_tokens");
	made_store = module:open_store("ramp_registered");
end

local function made_with(name)
	local made = made_store:get(name);
	return made and made.digest;
end

-- Checks the store, because the user manager takes every session for an account.
local function is_account(name)
	return prosody.hosts[module.host].users.user_exists(name);
end

local function is_used(name, token)
	return made_with(name) == token.digest and is_account(name);
end

-- Compares every token in full, so the duration reveals nothing about the tokens.
local function name_for(token)
	local digest, found = sha256(token, true), nil;
	for name, known in pairs(given_store:get(nil) or {}) do
		if equals(digest, known.digest) and time.now() * 1000000 <= known.ends_at and not is_used(name, known) then
			found = name;
		end
	end
	return found, digest;
end

local function offer(event)
	local session = event.origin;
	if session.type ~= "c2s_unauthed" or not session.secure then
		return;
	end
	for name, known in pairs(given_store:get(nil) or {}) do
		if time.now() * 1000000 <= known.ends_at and not is_used(name, known) then
			event.features:tag("register", { xmlns = xmlns_stream }):up();
			return;
		end
	end
end

local last_line = 0;

local function refuse(session, stanza, kind, condition, text)
	session.ramp_refusals = (session.ramp_refusals or 0) + 1;
	if time.now() - last_line >= pause_s then
		last_line = time.now();
		module:log("warn", "refused a registration: %s", text);
	end
	session.send(st.error_reply(stanza, kind, condition, text));
	if session.ramp_refusals >= refusals_max then
		session:close({ condition = "policy-violation", text = "too many refusals" });
	end
	return true;
end

local function take_token(event)
	local session, stanza = event.origin, event.stanza;
	if session.type ~= "c2s_unauthed" or not session.secure then
		session.send(st.error_reply(stanza, "cancel", "service-unavailable"));
		return true;
	end
	session.ramp_registration = nil;
	local token = stanza.tags[1].attr.token or "";
	if stanza.attr.type ~= "set" or token == "" or #token > token_length_max then
		return refuse(session, stanza, "cancel", "item-not-found", "the token is invalid");
	end
	local name, digest = name_for(token);
	if not name then
		return refuse(session, stanza, "cancel", "item-not-found", "the token is unknown, used or expired");
	end
	session.ramp_registration = { name = name, digest = digest };
	session.send(st.reply(stanza));
	return true;
end

local function send_away(name)
	local user = prosody.hosts[module.host].sessions[name];
	for _, session in pairs(user and user.sessions or {}) do
		session:close({ condition = "not-authorized", text = "the account is closed" });
	end
end

-- Ends the sessions of accounts that the command has closed in the store.
local function look()
	for name in pairs(given_store:get(nil) or {}) do
		if prosody.hosts[module.host].sessions[name] and not is_account(name) then
			send_away(name);
		end
	end
	return look_s;
end

local function register(event)
	local session, stanza = event.origin, event.stanza;
	local accepted = session.ramp_registration;
	if session.type ~= "c2s_unauthed" or not session.secure then
		session.send(st.error_reply(stanza, "cancel", "service-unavailable"));
		return true;
	elseif not accepted then
		return refuse(session, stanza, "auth", "not-allowed", "registration needs a token");
	end
	local query = stanza.tags[1];
	if stanza.attr.type == "get" then
		session.send(st.reply(stanza):tag("query", { xmlns = xmlns_register })
			:text_tag("username", accepted.name):tag("password"));
		return true;
	end
	local name, password = accepted.name, query:get_child_text("password") or "";
	if query:get_child("remove") or query:get_child_text("username") ~= name then
		return refuse(session, stanza, "modify", "not-acceptable", "the token is for the account " .. name .. " only");
	elseif password == "" or #password > password_length_max then
		return refuse(session, stanza, "modify", "not-acceptable",
			"the password must have 1 to " .. password_length_max .. " bytes");
	end
	local known = (given_store:get(nil) or {})[name];
	if not known or known.digest ~= accepted.digest or is_used(name, known) then
		return refuse(session, stanza, "cancel", "conflict", "the token was used or revoked meanwhile");
	end
	local kept = made_store:set(name, { digest = known.digest });
	if not kept or not usermanager.create_user(name, password, module.host) then
		return refuse(session, stanza, "wait", "internal-server-error", "it cannot be stored now; try again later");
	end
	send_away(name); -- sessions of an earlier account with this name
	module:log("warn", "registered the account %s", name);
	session.send(st.reply(stanza));
	return true;
end


function module.load()
	if module.host ~= "*" and prosody.process_type == "prosody" then
		open_stores();
		module:hook("stream-features", offer);
		module:hook("stanza/iq/" .. xmlns_token .. ":preauth", take_token);
		module:hook("stanza/iq/" .. xmlns_register .. ":query", register);
		module:add_timer(look_s, look);
	end
end

local function set_password(name, password, host)
	if not usermanager.user_exists(name, host) then
		return usermanager.create_user(name, password, host);
	elseif not usermanager.test_password(name, host, password) then
		return usermanager.set_password(name, password, host);
	end
	return true;
end

function module.command(arg)
	local json = require "util.json";
	local host = arg[1];
	if not prosody.hosts[host] then
		io.stderr:write("the configuration has no such host\n");
		return 1;
	end
	require "core.storagemanager".initialize_host(host);
	usermanager.initialize_host(host);
	module.host = host; -- luacheck: ignore 122/module
	open_stores();
	local accounts = json.decode(io.read("*a"));
	if type(accounts) ~= "table" then
		io.stderr:write("standard input is not a JSON object\n");
		return 1;
	end
	local given, tokens = given_store:get(nil) or {}, {};
	for name, account in pairs(accounts) do
		if type(account) == "string" then
			local done, reason = set_password(name, account, host);
			if not done then
				io.stderr:write(("%s: %s\n"):format(name, tostring(reason)));
				return 1;
			end
		elseif type(account) == "table" and account.digest then
			tokens[name], given[name] = true, { digest = account.digest, ends_at = account.ends_at };
		else -- a digest without a token, and expired
			tokens[name], given[name] = true, { digest = "", ends_at = 0 };
		end
	end
	if not next(tokens) then
		return 0;
	end
	if not given_store:set(nil, given) then
		io.stderr:write("the tokens cannot be written\n");
		return 1;
	end
	for name in pairs(tokens) do -- last, so no account is created meanwhile with an old token
		local digest = made_with(name);
		if is_account(name) and digest ~= given[name].digest then
			usermanager.delete_user(name, host);
			made_store:set(name, nil);
		end
	end
	return 0;
end
