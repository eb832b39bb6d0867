-- SPDX-License-Identifier: MIT
-- For wrk: 16 requests at a time on each connection.
local depth = 16

init = function()
  local requests = {}
  for i = 1, depth do
    requests[i] = wrk.format("GET", "/")
  end
  batch = table.concat(requests)
end

request = function()
  return batch
end
