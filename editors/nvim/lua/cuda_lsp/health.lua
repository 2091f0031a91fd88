-- :checkhealth cuda_lsp
local health = vim.health or require('health')
local ok, warn, fail = health.ok or health.report_ok, health.warn or health.report_warn, health.error or health.report_error
local start = health.start or health.report_start

local M = {}

function M.check()
  start('cuda-lsp')
  local command = require('cuda_lsp').cmd
  if not command then
    warn("setup was not called (Neovim 0.11 and newer need not, with vim.lsp.enable('cuda_lsp'))")
    command = { 'cuda-lsp', 'serve' }
  end
  local program = command[1]
  if vim.fn.executable(program) == 0 then
    fail(program .. ' is not executable: pip install it, or name it in cmd of setup')
    return
  end
  local asked = vim.deepcopy(command)
  asked[#asked] = '--version' -- in place of `serve`
  local version = vim.trim(vim.fn.system(asked))
  if vim.v.shell_error == 0 then ok(program .. ': ' .. version) else fail(program .. ' does not start: ' .. version) end
end

return M
