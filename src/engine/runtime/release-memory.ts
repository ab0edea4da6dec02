/**
 * Frees memory immediately instead of at the next garbage collection, by transferring it to a
 * closed port.
 */
export function releaseMemory(memory: readonly ArrayBufferLike[]): void {
  const { port1, port2 } = new MessageChannel();
  const transferable = [...new Set(memory)].filter((buffer) => buffer instanceof ArrayBuffer);
  port2.close();
  port1.postMessage(transferable, transferable);
  port1.close();
}
