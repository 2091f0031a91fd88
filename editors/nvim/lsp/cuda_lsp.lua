-- Neovim 0.11 and newer: with this folder's parent on 'runtimepath', `vim.lsp.enable('cuda_lsp')` is all.
return {
  cmd = { 'cuda-lsp', 'serve' },
  filetypes = { 'cuda' },
  root_markers = { 'cuda-lsp.toml', 'compile_commands.json', '.git' },
  init_options = { trusted = true },
  settings = { ['cuda-lsp'] = vim.empty_dict() },
}
