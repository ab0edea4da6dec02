import type { IncomingMessage } from "node:http";
import { HttpError } from "./http-error.js";
import { ReceivingMessage } from "./receiving-message.js";

const clientClosed = () => new HttpError(499, "The client closed the connection.");

/**
 * Receives the body of a request. What limits its time is `requestTimeout` of the server
 * (listen.ts).
 * @throws HttpError 413 for more than `maxBytes`, 415 for a compressed body, 499 if the client
 * leaves, 503 if unfinished bodies take too much memory.
 */
export async function receiveBody(incoming: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const { "content-encoding": encoding = "identity", "content-length": announced } = incoming.headers;
  if (encoding.toLowerCase() !== "identity")
    throw new HttpError(415, `A body with Content-Encoding ${encoding} is not supported. Send it uncompressed.`);
  const tooLarge = () => new HttpError(413, `The body has more than ${maxBytes} bytes. Send less.`);
  if (Number(announced) > maxBytes) throw tooLarge();
  if (incoming.destroyed) throw clientClosed();
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let length = 0;
    const finish = () => {
      receiving.finish();
      incoming.off("data", receive).off("end", succeed).off("error", leave).off("close", leave);
    };
    const fail = (error: HttpError) => {
      finish();
      // A stream without listeners is not read further, and an error without one would end the
      // process.
      incoming.pause().on("error", () => {});
      reject(error);
    };
    const receiving = new ReceivingMessage(() =>
      fail(new HttpError(503, "The server receives more than it has memory for. Send the body again, and faster.")),
    );
    const receive = (part: Buffer) => {
      length += part.length;
      if (length > maxBytes) return fail(tooLarge());
      parts.push(part);
      receiving.add(part.length);
    };
    const succeed = () => {
      finish();
      resolve(Buffer.concat(parts, length));
    };
    const leave = () => fail(clientClosed());
    incoming.on("data", receive).on("end", succeed).on("error", leave).on("close", leave);
  });
}
