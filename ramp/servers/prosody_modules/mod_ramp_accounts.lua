-- Creates accounts and sets passwords through Prosody's user manager, whether the server runs or not:
--     prosodyctl --config FILE mod_ramp_accounts DOMAIN < accounts.json
-- Standard input is a JSON object that maps names to passwords, so no password appears on a command line.
module:set_global();

local json = require "util.json";
local storagemanager = require "core.storagemanager";
local usermanager = require "core.usermanager";

function module.command(arg)
	local host = arg[1];
	if not prosody.hosts[host] then
		io.stderr:write("the configuration has no such host\n");
		return 1;
	end
	storagemanager.initialize_host(host);
	usermanager.initialize_host(host);
	local accounts = json.decode(io.read("*a"));
	if type(accounts) ~= "table" then
		io.stderr:write("standard input is not a JSON object\n");
		return 1;
	end
	for name, password in pairs(accounts) do
		local done, reason = true, nil;
		if not usermanager.user_exists(name, host) then
			done, reason = usermanager.create_user(name, password, host);
		elseif not usermanager.test_password(name, host, password) then
			done, reason = usermanager.set_password(name, password, host);
		end
		if not done then
			io.stderr:write(("%s: %s\n"):format(name, tostring(reason)));
			return 1;
		end
	end
	return 0;
end
