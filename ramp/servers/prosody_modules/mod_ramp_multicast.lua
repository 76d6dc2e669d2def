-- Spreads one message to many accounts of its host (XEP-0033, Extended Stanza Addressing), for those signed in to it:
-- a message to the host itself, with the receivers in <addresses/>, each with type="bcc". It is spread whole or refused
-- whole; receivers that cannot be reached bounce one by one. Limits as in ramp/servers/embedded_multicast.py.
local cache = require "util.cache";
local jid = require "util.jid";
local st = require "util.stanza";
local throttle = require "util.throttle";

local xmlns = "http://jabber.org/protocol/address";

local receivers_max = module:get_option_number("ramp_multicast_receivers", 100);
local volume_max = module:get_option_number("ramp_multicast_bytes", 4000000); -- of all copies of a message together
local copies_at_once = module:get_option_number("ramp_multicast_copies_at_once", 20000); -- of one account
local copies_per_second = module:get_option_number("ramp_multicast_copies_per_second", 2000);
local accounts_remembered = 10000;

local spent = cache.new(accounts_remembered);

module:add_feature(xmlns);
module:add_item("extension", st.stanza("x", { xmlns = "jabber:x:data", type = "result" })
	:tag("field", { var = "FORM_TYPE", type = "hidden" }):text_tag("value", xmlns):up()
	:tag("field", { var = "message", type = "text-single" }):text_tag("value", tostring(receivers_max)):up());

-- The receivers, each once; or nil and the condition of the refusal.
local function receivers_of(stanza)
	local addresses;
	for tag in stanza:childtags("addresses", xmlns) do
		if addresses then
			return nil, "bad-request";
		end
		addresses = tag;
	end
	if #addresses.tags == 0 or #addresses.tags > receivers_max then
		return nil, "not-acceptable";
	end
	local found, seen = {}, {};
	for _, address in ipairs(addresses.tags) do
		if address.name ~= "address" or (address.attr.xmlns or xmlns) ~= xmlns or address.attr.type ~= "bcc" then
			return nil, "feature-not-implemented";
		end
		for name in pairs(address.attr) do
			if name ~= "type" and name ~= "jid" and name ~= "xmlns" then
				return nil, "feature-not-implemented";
			end
		end
		local receiver = address.attr.jid;
		local node, host = jid.prepped_split(receiver);
		if not node or jid.prep(receiver) ~= receiver then
			return nil, "jid-malformed";
		elseif host ~= module.host then
			return nil, "forbidden";
		end
		if not seen[receiver] then
			seen[receiver] = true;
			found[#found + 1] = receiver;
		end
	end
	return found;
end

local function may_have_copies(account, number)
	local used = spent:get(account);
	if not used then
		used = throttle.create(copies_at_once, copies_at_once / copies_per_second);
		spent:set(account, used);
	end
	return used:poll(number);
end

module:hook("message/host", function (event)
	local origin, stanza = event.origin, event.stanza;
	if not stanza:get_child("addresses", xmlns) then
		return;
	elseif stanza.attr.type == "error" then
		return true; -- errors never bounce, and nobody wants a hundred of them
	end
	local function refuse(kind, condition)
		origin.send(st.error_reply(stanza, kind, condition));
		return true;
	end
	if origin.type ~= "c2s" or origin.host ~= module.host or not origin.full_jid then
		return refuse("auth", "forbidden"); -- of another server, or a component
	end
	local receivers, condition = receivers_of(stanza);
	if not receivers then
		return refuse("modify", condition);
	end
	local copy = st.clone(stanza);
	copy:remove_children("addresses", xmlns);
	if #tostring(copy) * #receivers > volume_max then
		return refuse("modify", "policy-violation");
	elseif not may_have_copies(jid.bare(origin.full_jid), #receivers) then
		return refuse("wait", "resource-constraint");
	end
	for _, receiver in ipairs(receivers) do
		local own = st.clone(copy);
		own.attr.to = receiver;
		prosody.core_post_stanza(origin, own, true); -- like one that the sender has sent to this receiver
	end
	return true;
end, 10);
