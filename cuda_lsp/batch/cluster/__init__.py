"""Files analysed by other machines: what is sent, who works there, and why the result is that of this one."""
