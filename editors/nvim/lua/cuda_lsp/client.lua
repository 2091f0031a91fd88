-- Clients of this server, as all versions of Neovim have them.
local M = {}

-- Call a method: with a colon from 0.11.
function M.call(client, method, ...)
  if vim.fn.has('nvim-0.11') == 1 then return client[method](client, ...) end
  return client[method](...)
end

function M.all()
  local known = vim.tbl_values((vim.lsp.get_clients or vim.lsp.get_active_clients)())
  return vim.tbl_filter(function(client) return client.name == 'cuda-lsp' or client.name == 'cuda_lsp' end, known)
end

-- The one of the buffer that somebody is in.
function M.here()
  for _, client in ipairs(M.all()) do
    if vim.lsp.buf_is_attached(0, client.id) then return client end
  end
end

return M
