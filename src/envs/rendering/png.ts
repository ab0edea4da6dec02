import { crc32, deflateSync } from "node:zlib";
import type { RgbImage } from "../env.js";

const SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
const BIT_DEPTH = 8;
const TRUE_COLOR = 2;

/** Builds a PNG chunk: length, type, data, checksum of type and data. */
function createChunk(type: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, checksum]);
}

/** Encodes an image as a PNG file (ISO/IEC 15948). */
export function encodePng({ width, height, data }: RgbImage): Uint8Array {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([BIT_DEPTH, TRUE_COLOR, 0, 0, 0], 8);
  const stride = 3 * width;
  // Every row starts with its filter type, 0 for none.
  const rows = Buffer.alloc((stride + 1) * height);
  for (let row = 0; row < height; row++)
    rows.set(data.subarray(row * stride, (row + 1) * stride), row * (stride + 1) + 1);
  return Buffer.concat([
    Buffer.from(SIGNATURE),
    createChunk("IHDR", header),
    createChunk("IDAT", deflateSync(rows)),
    createChunk("IEND", new Uint8Array()),
  ]);
}
