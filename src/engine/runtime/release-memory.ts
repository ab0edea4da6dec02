import { MessageChannel } from "node:worker_threads";

/** Frees memory at once rather than when it is collected, by handing it to nobody: it may be larger than all else. */
export function releaseMemory(memory: readonly ArrayBufferLike[]): void {
  const { port1, port2 } = new MessageChannel();
  const transferable = [...new Set(memory)].filter((buffer) => buffer instanceof ArrayBuffer);
  port2.close();
  port1.postMessage(transferable, transferable);
  port1.close();
}
