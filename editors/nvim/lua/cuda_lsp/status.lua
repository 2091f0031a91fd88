-- The verdict of a file, from the notification `cuda-lsp/fileStatus`, for a status line.
local M = {}

local files = {}

function M.take(_, file)
  files[file.uri] = file
  vim.cmd('redrawstatus!')
end

local function several(count, what) return ('%d %s%s'):format(count, what, count == 1 and '' or 's') end

-- Of a buffer (0: this one); '' where nothing is known, or no kernel is there.
function M.text(buffer)
  local file = files[vim.uri_from_bufnr(buffer or 0)]
  if not file then return '' end
  local count, errors = {}, file.errors or 0
  for _, kernel in ipairs(file.kernels) do count[kernel.verdict] = (count[kernel.verdict] or 0) + 1 end
  local function kernels(verdict) return several(count[verdict], 'kernel') .. ' ' .. verdict end
  if #file.kernels == 0 and errors == 0 then return '' end
  if count.racy then return kernels('racy') end
  if not file.refined then return 'proving' end
  if count.undecided then return kernels('undecided') end
  if errors > 0 then return several(errors, 'error') end
  if count['barrier missed'] then return several(count['barrier missed'], 'kernel') .. ' may miss a barrier' end
  if count['races ignored'] then return kernels('races ignored') end
  return 'race-free'
end

return M
