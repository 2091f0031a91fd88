-- `:CudaLsp {what}`: what the server does on request, at the cursor.
local clients = require('cuda_lsp.client')

local M = {}

local function line() return vim.api.nvim_win_get_cursor(0)[1] end

local function uri() return vim.uri_from_bufnr(0) end

local function execute(command, arguments)
  local server = clients.here()
  if not server then
    vim.notify('cuda-lsp does not run for this buffer', vim.log.levels.ERROR)
    return
  end
  local asked = { command = 'cuda-lsp.' .. command, arguments = arguments }
  clients.call(server, 'request', 'workspace/executeCommand', asked, function(err)
    if err then vim.notify(err.message, vim.log.levels.ERROR) end
  end, 0)
end

-- The server of this buffer starts anew, for all buffers that it had.
local function restart()
  local old = clients.here()
  if not old then return vim.cmd('doautocmd FileType') end
  local buffers = vim.lsp.get_buffers_by_client_id(old.id)
  clients.call(old, 'stop')
  local waited = 0
  local function again()
    waited = waited + 100
    if not clients.call(old, 'is_stopped') and waited < 5000 then return vim.defer_fn(again, 100) end
    if not clients.call(old, 'is_stopped') then clients.call(old, 'stop', true) end
    for _, buffer in ipairs(buffers) do
      vim.api.nvim_buf_call(buffer, function() vim.cmd('doautocmd FileType') end)
    end
  end
  vim.defer_fn(again, 100)
end

local WHAT = {
  check = function() execute('runDynamicCheck', { uri(), line() - 1 }) end,
  program = function(arguments)
    if #arguments == 0 then execute('runProgram', { uri() }) else execute('runProgramWith', { uri(), arguments }) end
  end,
  banks = function() execute('showBanks', { uri(), line() }) end,
  intervals = function() execute('showIntervals', { uri(), line() }) end,
  workspace = function() execute('checkWorkspace', {}) end,
  cancel = function()
    if require('cuda_lsp.progress').cancel() == 0 then vim.notify('nothing to cancel') end
  end,
  restart = restart,
}

local function complete(begun, given)
  if #vim.split(given, '%s+') > 2 then return {} end
  return vim.tbl_filter(function(name) return vim.startswith(name, begun) end, vim.fn.sort(vim.tbl_keys(WHAT)))
end

function M.create()
  vim.api.nvim_create_user_command('CudaLsp', function(given)
    local what = table.remove(given.fargs, 1)
    if not WHAT[what] then
      vim.notify(('CudaLsp %s: one of %s'):format(what, table.concat(complete('', ''), ', ')), vim.log.levels.ERROR)
      return
    end
    WHAT[what](given.fargs)
  end, { nargs = '+', complete = complete, desc = 'Checks of CUDA kernels' })
  -- Neovim watches no files on Linux.
  vim.api.nvim_create_autocmd('BufWritePost', {
    group = vim.api.nvim_create_augroup('cuda_lsp_files', { clear = true }),
    pattern = { 'cuda-lsp.toml', 'pyproject.toml' },
    callback = function(event)
      local change = { uri = vim.uri_from_fname(vim.fn.fnamemodify(event.file, ':p')), type = 2 }
      for _, server in ipairs(clients.all()) do
        clients.call(server, 'notify', 'workspace/didChangeWatchedFiles', { changes = { change } })
      end
    end,
  })
  vim.lsp.commands['cuda-lsp.askLaunch'] = require('cuda_lsp.launch').ask
end

M.handlers = {
  ['$/progress'] = require('cuda_lsp.progress').take,
  ['cuda-lsp/fileStatus'] = require('cuda_lsp.status').take,
  ['cuda-lsp/programOutput'] = require('cuda_lsp.output').show,
}

return M
