-- The action "Set launch configuration of …": asks for the launch of a kernel and writes it above it.
local OTHER = 'Other extents…'

local M = {}

-- `given`: "256" or "16, 16"; nil where it is neither.
local function directive(given)
  local block = (given or ''):gsub('%s', '')
  local _, commas = block:gsub(',', '')
  if commas > 2 or not (',' .. block):find('^,%d[%d,]*$') or block:find(',,') or block:find(',$') then return nil end
  return ('// cuda-lsp: launch block=(%s)'):format(block)
end

local function write(uri, line, text)
  local buffer = vim.uri_to_bufnr(uri)
  vim.fn.bufload(buffer)
  vim.api.nvim_buf_set_lines(buffer, line, line, false, { text })
end

-- The command `cuda-lsp.askLaunch`: URI, line (from 0), indent, directives to offer.
function M.ask(command)
  local uri, line, indent, offered = unpack(command.arguments)
  local choices = vim.list_extend(vim.deepcopy(offered), { OTHER })
  vim.ui.select(choices, { prompt = 'The launch of this kernel' }, function(chosen)
    if chosen and chosen ~= OTHER then
      write(uri, line, indent .. chosen)
    elseif chosen then
      vim.ui.input({ prompt = 'Threads of a block, such as 256 or 16,16: ' }, function(given)
        local text = directive(given)
        if text then
          write(uri, line, indent .. text)
        elseif given and given ~= '' then
          vim.notify(given .. ': one to three numbers are a block, such as 16,16', vim.log.levels.ERROR)
        end
      end)
    end
  end)
end

return M
