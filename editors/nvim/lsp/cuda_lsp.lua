-- Neovim 0.11 and newer: with this folder's parent on 'runtimepath', `vim.lsp.enable('cuda_lsp')` is all.
local commands = require('cuda_lsp.commands')
commands.create()
return {
  cmd = { 'cuda-lsp', 'serve' },
  filetypes = { 'cuda' },
  root_markers = { 'cuda-lsp.toml', 'compile_commands.json', '.git' },
  -- true: kernels may be compiled and run; paths, flags and programs are read from the project's files
  init_options = { trusted = false, asksLaunch = true },
  handlers = commands.handlers,
  settings = { ['cuda-lsp'] = vim.empty_dict() },
}
