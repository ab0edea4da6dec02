import { fs, system } from "#platform";
import { create, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { AppendFile } from "../append-file.js";
import { maskedCrc32c } from "./crc32c.js";
import { EventSchema } from "./event_pb.js";

export type EventInit = Omit<MessageInitShape<typeof EventSchema>, "wallTime" | "step" | "$typeName">;

/**
 * A TensorBoard event file: TFRecords (length, its checksum, data, its checksum) of Event messages.
 * `write` returns after the operating system has accepted the event.
 */
export class EventFile {
  private constructor(
    private readonly file: AppendFile,
    private readonly now: () => number,
  ) {}

  /**
   * Creates a new file in `folder`; TensorBoard reads all event files there, in the order of their
   * names, as one run. `now` returns milliseconds since 1970. @throws FILE_WRITE_FAILED
   */
  static create(folder: string, now: () => number): EventFile {
    const seconds = Math.floor(now() / 1000).toFixed(0);
    const stem = fs.join(folder, `events.out.tfevents.${seconds.padStart(10, "0")}.${system.hostname}.${system.pid}`);
    const file = new EventFile(AppendFile.create(findFreeName(stem)), now);
    file.write(0, { fileVersion: "brain.Event:2" });
    return file;
  }

  get closed(): boolean {
    return this.file.closed;
  }

  write(step: number, event: EventInit): void {
    const message = create(EventSchema, { ...event, step: BigInt(step), wallTime: this.now() / 1000 });
    this.file.append(frameRecord(toBinary(EventSchema, message)));
  }

  close(): void {
    this.file.close();
  }
}

/** Encodes a TFRecord. */
function frameRecord(data: Uint8Array): Uint8Array {
  const record = new Uint8Array(data.length + 16);
  const view = new DataView(record.buffer);
  view.setBigUint64(0, BigInt(data.length), true);
  view.setUint32(8, maskedCrc32c(record.subarray(0, 8)), true);
  record.set(data, 12);
  view.setUint32(12 + data.length, maskedCrc32c(data), true);
  return record;
}

/**
 * Creates the first free name of STEM.0, STEM.1, ...; a process may open several files within one
 * second.
 */
function findFreeName(stem: string): string {
  let number = 0;
  while (fs.existsSync(`${stem}.${number}`)) number++;
  return `${stem}.${number}`;
}
