" CUDA's headers, and other headers that hold kernels (:set filetype=cpp takes one back until it is read again).
autocmd BufRead,BufNewFile *.cuh set filetype=cuda
autocmd BufRead,BufWritePost *.h,*.hh,*.hpp,*.hxx,*.inl,*.inc,*.ipp,*.tpp
      \ if &filetype !=# 'cuda' && luaeval("require('cuda_lsp').holds_kernels(0)") | set filetype=cuda | endif
