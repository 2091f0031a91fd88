-- cuda-lsp for Neovim 0.7 and newer: starts the server for CUDA files.
--
--   require('cuda_lsp').setup()                                        -- `cuda-lsp` on PATH
--   require('cuda_lsp').setup({ cmd = { '/opt/venv/bin/cuda-lsp', 'serve' } })
--
-- Neovim 0.11 and newer can do without this file: lsp/cuda_lsp.lua beside it and vim.lsp.enable('cuda_lsp').
local M = {}

local MARKERS = { 'cuda-lsp.toml', 'compile_commands.json', '.git' }

-- The nearest folder above the file that holds a marker, else the file's own. (vim.fs is newer than 0.7.)
local function root_of(file)
  local folder = vim.fn.fnamemodify(file, ':p:h')
  for _, marker in ipairs(MARKERS) do
    local found = vim.fn.finddir(marker, folder .. ';')
    if found == '' then found = vim.fn.findfile(marker, folder .. ';') end
    if found ~= '' then return vim.fn.fnamemodify(found, ':p:s?/$??:h') end
  end
  return folder
end

-- Neovim 0.8 and newer share one server among the buffers of a folder.
local function start(config, buffer)
  if vim.lsp.start then
    vim.lsp.start(config, { bufnr = buffer })
    return
  end
  local key = config.root_dir
  local id = M.clients[key]
  if not id or not vim.lsp.get_client_by_id(id) then
    id = vim.lsp.start_client(config)
    M.clients[key] = id
  end
  if id then vim.lsp.buf_attach_client(buffer, id) end
end

M.clients = {}

-- What a status line says of a buffer: '1 kernel racy', 'race-free', 'proving', …
function M.status(buffer) return require('cuda_lsp.status').text(buffer) end

local function trusts(trusted, root)
  if type(trusted) == 'function' then trusted = trusted(root) end
  return trusted == true
end

-- Whether a header has a kernel, outside comments and where no macro of that name is defined (ftdetect asks).
function M.holds_kernels(buffer)
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n')
  if not text:find('__global__', 1, true) then return false end
  text = text:gsub('/%*.-%*/', ' '):gsub('//[^\n]*', '')
  for line in text:gmatch('[^\n]+') do
    if line:find('%f[%w_]__global__%f[^%w_]') and not line:find('^%s*#') then return true end
  end
  return false
end

-- options: cmd, settings (see the server's documentation), on_attach, capabilities, and trusted (true, or a
-- function of the root folder that says so): kernels may be compiled and run there, and paths, flags and programs
-- are read from the project's files.
function M.setup(options)
  options = options or {}
  M.cmd = options.cmd or { 'cuda-lsp', 'serve' }
  local commands = require('cuda_lsp.commands')
  commands.create()
  local group = vim.api.nvim_create_augroup('cuda_lsp', { clear = true })
  vim.api.nvim_create_autocmd('FileType', {
    group = group,
    pattern = 'cuda',
    callback = function(event)
      local settings = options.settings or vim.empty_dict()
      local root = root_of(vim.api.nvim_buf_get_name(event.buf))
      start({
        name = 'cuda-lsp',
        cmd = M.cmd,
        root_dir = root,
        init_options = { trusted = trusts(options.trusted, root), settings = settings, asksLaunch = true },
        settings = { ['cuda-lsp'] = settings },
        capabilities = options.capabilities,
        handlers = commands.handlers,
        on_attach = options.on_attach,
      }, event.buf)
    end,
  })
end

return M
