-- Sends the requests of a file in turn: each is its length in decimal, a line feed, and its bytes.
-- MARK in a request becomes a number of its own. Arguments: file, first number, most requests, first turn,
-- and the milliseconds before each request.
local MARK = string.rep("@", 12)

local function split(request)
  local pieces, from = {}, 1
  while true do
    local at = string.find(request, MARK, from, true)
    if not at then
      break
    end
    pieces[#pieces + 1] = string.sub(request, from, at - 1)
    from = at + #MARK
  end
  pieces[#pieces + 1] = string.sub(request, from)
  return pieces
end

local requests, number, left, turn = {}, 0, 0, 0

function init(args)
  local file = assert(io.open(args[1], "rb"))
  number, left, turn = tonumber(args[2]), tonumber(args[3]), tonumber(args[4])
  local pause = tonumber(args[5] or 0)
  if pause > 0 then
    function delay()
      return pause
    end
  end
  while true do
    local length = file:read("*l")
    if not length then
      break
    end
    requests[#requests + 1] = split(file:read(tonumber(length)))
  end
  file:close()
end

function request()
  turn = turn % #requests + 1
  left = left - 1
  if left < 0 then
    wrk.thread:stop()
  end
  local pieces = requests[turn]
  if #pieces == 1 then
    return pieces[1]
  end
  number = number + 1
  return table.concat(pieces, string.format("%012d", number))
end

function done(summary, latency)
  -- Lost connections, and then the fields of a `Measurement`.
  local failed = summary.errors
  io.write(string.format(
    "RESULT %d %d %d %f %d %f %f %f %f\n",
    failed.connect + failed.read + failed.write + failed.timeout,
    summary.requests, failed.status, summary.duration / 1e6, summary.bytes,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency:percentile(99.9) / 1e3, latency.max / 1e3
  ))
end
