// Sends this process the signal INTERRUPT_SIGNAL as soon as it writes INTERRUPT_AT to standard
// error. A test that reads the output and then sends the signal may come too late on a busy
// machine.
const { INTERRUPT_AT, INTERRUPT_SIGNAL } = process.env;
const write = process.stderr.write.bind(process.stderr);
let isSent = false;
process.stderr.write = (data, ...rest) => {
  const result = write(data, ...rest);
  if (!isSent && String(data).includes(INTERRUPT_AT)) {
    isSent = true;
    process.kill(process.pid, INTERRUPT_SIGNAL);
  }
  return result;
};
