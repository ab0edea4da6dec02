/** Bytes that all unfinished messages of the process may take together. */
const MAX_RECEIVING_BYTES = 256 * 2 ** 20;

/** Memory that a part of a message takes in addition to its bytes. */
const PART_BYTES = 256;

/**
 * A request's body, or a WebSocket message, that has not arrived in full. When the unfinished
 * messages of the process take more than MAX_RECEIVING_BYTES, the oldest is dropped: slow senders
 * cannot keep out others, whose messages arrive at once.
 */
export class ReceivingMessage {
  /** From the oldest to the newest. */
  private static readonly unfinished = new Set<ReceivingMessage>();
  private static totalBytes = 0;

  private bytes = 0;

  /** `drop` ends the connection. */
  constructor(private readonly drop: () => void) {}

  get isUnfinished(): boolean {
    return this.bytes > 0;
  }

  /** Counts a part that has arrived. */
  add(length: number): void {
    this.count(length + PART_BYTES);
    ReceivingMessage.unfinished.add(this);
    while (ReceivingMessage.totalBytes > MAX_RECEIVING_BYTES) {
      const [oldest] = ReceivingMessage.unfinished;
      oldest.finish();
      oldest.drop();
    }
  }

  /** Takes a part back that was counted and belongs to no message. */
  remove(length: number): void {
    this.count(-Math.min(this.bytes, length + PART_BYTES));
    if (this.bytes === 0) this.finish();
  }

  /** Ends the message: it has arrived, or nothing more of it is read. */
  finish(): void {
    this.count(-this.bytes);
    ReceivingMessage.unfinished.delete(this);
  }

  private count(bytes: number): void {
    this.bytes += bytes;
    ReceivingMessage.totalBytes += bytes;
  }
}
