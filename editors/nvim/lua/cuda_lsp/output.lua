-- What programs under check print, in a window below: the notification `cuda-lsp/programOutput`.
local NAME = 'cuda-lsp://program'

local M = {}

local function buffer()
  local known = vim.fn.bufnr('^' .. NAME .. '$')
  if known ~= -1 then return known end
  local made = vim.api.nvim_create_buf(true, true)
  vim.api.nvim_buf_set_name(made, NAME)
  return made
end

function M.show(_, printed)
  local shown = buffer()
  local lines = vim.split(printed.text:gsub('\r', ''):gsub('\n$', ''), '\n')
  vim.api.nvim_buf_set_lines(shown, 0, -1, false, vim.list_extend({ '== ' .. printed.title }, lines))
  if vim.fn.bufwinid(shown) == -1 then
    local here = vim.api.nvim_get_current_win()
    vim.cmd(('botright 8split | buffer %d'):format(shown))
    vim.api.nvim_set_current_win(here)
  end
end

return M
