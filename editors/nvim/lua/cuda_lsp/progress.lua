-- Work of the server that goes on, so that `:CudaLsp cancel` can end it.
local M = {}

local running = {} -- tokens, by client

function M.take(err, progress, context, ...)
  local id, kind = context.client_id, progress.value.kind
  running[id] = running[id] or {}
  if kind == 'begin' then running[id][progress.token] = true end
  if kind == 'end' then running[id][progress.token] = nil end
  local shown = vim.lsp.handlers['$/progress']
  if shown then return shown(err, progress, context, ...) end
end

-- How many were asked to end.
function M.cancel()
  local count = 0
  for id, tokens in pairs(running) do
    local client = vim.lsp.get_client_by_id(id)
    for token in pairs(client and tokens or {}) do
      require('cuda_lsp.client').call(client, 'notify', 'window/workDoneProgress/cancel', { token = token })
      count = count + 1
    end
  end
  return count
end

return M
