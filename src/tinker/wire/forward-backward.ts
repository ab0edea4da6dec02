import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { concatBytes } from "../../core/bytes.js";
import { errorMessage, invalidArgument } from "../../core/errors.js";
import {
  ArrayRecordSchema,
  BatchedTensorSchema,
  DatumSchema,
  ForwardBackwardOutputSchema,
  ForwardBackwardRequestSchema,
  LossConfigValueSchema,
  type ArrayRecord,
  type BatchedTensor,
  type Datum,
} from "./tinker_pb.js";
import {
  checkTensor,
  decodeNumbers,
  decodeTensor,
  DTYPE_BYTES,
  encodeNumbers,
  encodeTensor,
  fromDType,
  toDType,
  type WireTensor,
} from "./wire-tensor.js";

/** A sequence to train on: tokens, and the inputs of the loss by name. */
export interface TrainingDatum {
  readonly tokens: readonly number[];
  readonly lossFnInputs: Readonly<Record<string, WireTensor>>;
}

/** A training pass: POST forward_backward. */
export interface ForwardBackwardRequest {
  readonly modelId: string;
  /** From 1 on, without gaps, for all requests of a model. */
  readonly seqId: number;
  readonly data: readonly TrainingDatum[];
  readonly lossFn: string;
  readonly lossFnConfig: Readonly<Record<string, number | string>>;
  /** Whether only the loss and its outputs are computed. */
  readonly forwardOnly: boolean;
}

/** Result of a training pass. */
export interface ForwardBackwardOutput {
  readonly lossFnOutputType: string;
  /** For each datum its outputs by name, such as `logprobs`. */
  readonly lossFnOutputs: readonly Readonly<Record<string, WireTensor>>[];
  /**
   * Metrics by name; the end of a name, such as ":sum", says how the values of several chunks are
   * combined.
   */
  readonly metrics: Readonly<Record<string, number>>;
}

export function encodeForwardBackward(request: ForwardBackwardRequest): Uint8Array<ArrayBuffer> {
  const { modelId, seqId, lossFn, lossFnConfig, forwardOnly } = request;
  const message = create(ForwardBackwardRequestSchema, { modelId, seqId, lossFn, forwardOnly });
  for (const [name, value] of Object.entries(lossFnConfig)) {
    // Older servers read the first map, which has numbers only.
    if (typeof value === "number") message.lossFnConfig[name] = value;
    message.lossFnConfigV2[name] = create(LossConfigValueSchema, {
      value: typeof value === "number" ? { case: "number", value } : { case: "text", value },
    });
  }
  message.data = request.data.map(encodeDatum);
  return toBinary(ForwardBackwardRequestSchema, message);
}

function encodeDatum({ tokens, lossFnInputs }: TrainingDatum): Datum {
  const datum = create(DatumSchema, {
    modelInput: [{ chunk: { case: "encodedText", value: { tokens: encodeNumbers("int32", tokens) } } }],
  });
  for (const [name, tensor] of Object.entries(lossFnInputs)) datum.lossFnInputs[name] = encodeTensor(tensor);
  return datum;
}

/** @throws INVALID_ARGUMENT for other bytes, tensors whose values do not fit, images and sounds. */
export function decodeForwardBackward(bytes: Uint8Array): ForwardBackwardRequest {
  const message = readMessage("forward_backward request", () => fromBinary(ForwardBackwardRequestSchema, bytes));
  const { modelId, seqId, lossFn, lossFnConfig, lossFnConfigV2, forwardOnly } = message;
  const config: Record<string, number | string> = { ...lossFnConfig };
  for (const [name, { value }] of Object.entries(lossFnConfigV2))
    if (value.case !== undefined) config[name] = value.value;
  return { modelId, seqId, lossFn, lossFnConfig: config, forwardOnly, data: message.data.map(decodeDatum) };
}

function decodeDatum({ modelInput, lossFnInputs }: Datum, index: number): TrainingDatum {
  const tokens = modelInput.flatMap(({ chunk }) => {
    if (chunk.case !== "encodedText")
      throw invalidArgument(`Datum ${index} has a part of kind ${chunk.case ?? "unknown"}; only tokens are possible.`);
    return [...decodeNumbers("int32", chunk.value.tokens)];
  });
  const inputs = Object.entries(lossFnInputs).map(([name, tensor]) => {
    try {
      return [name, decodeTensor(tensor)] as const;
    } catch (error) {
      throw invalidArgument(`\`${name}\` of datum ${index}: ${errorMessage(error)}`);
    }
  });
  return { tokens, lossFnInputs: Object.fromEntries(inputs) };
}

export function encodeForwardBackwardOutput(output: ForwardBackwardOutput): Uint8Array<ArrayBuffer> {
  const { lossFnOutputType, lossFnOutputs, metrics } = output;
  // The tensors of a record have equal shapes except for their length, so that others begin a new
  // record.
  const records: (readonly Readonly<Record<string, WireTensor>>[])[] = [];
  for (const datum of lossFnOutputs) {
    const last = records.at(-1);
    if (last !== undefined && haveEqualRows(last[0], datum)) records[records.length - 1] = [...last, datum];
    else records.push([datum]);
  }
  return toBinary(
    ForwardBackwardOutputSchema,
    create(ForwardBackwardOutputSchema, {
      lossFnOutputType,
      metrics,
      lossFnOutputs: records.map((data) => encodeRecord(lossFnOutputType, data)),
    }),
  );
}

function haveEqualRows(a: Readonly<Record<string, WireTensor>>, b: Readonly<Record<string, WireTensor>>): boolean {
  const describe = (outputs: Readonly<Record<string, WireTensor>>) =>
    JSON.stringify(Object.entries(outputs).map(([name, { dtype, shape }]) => [name, dtype, shape.slice(1)]));
  return describe(a) === describe(b);
}

function encodeRecord(typeTag: string, data: readonly Readonly<Record<string, WireTensor>>[]): ArrayRecord {
  const record = create(ArrayRecordSchema, { typeTag, numDatums: BigInt(data.length) });
  for (const [name, { dtype, shape }] of Object.entries(data[0])) {
    const parts = data.map((datum) => encodeNumbers(dtype, datum[name].data));
    const offsets = [0];
    for (const { length } of parts) offsets.push(offsets.at(-1)! + length);
    record.fields[name] = create(BatchedTensorSchema, {
      data: concatBytes(parts),
      offsets: encodeNumbers("int64", offsets),
      dtype: toDType(dtype),
      trailingShape: shape.slice(1).map(BigInt),
    });
  }
  return record;
}

/** @throws INVALID_ARGUMENT for other bytes, and tensors whose values do not fit. */
export function decodeForwardBackwardOutput(bytes: Uint8Array): ForwardBackwardOutput {
  const message = readMessage("result of forward_backward", () => fromBinary(ForwardBackwardOutputSchema, bytes));
  const lossFnOutputs = message.lossFnOutputs.flatMap(({ fields, numDatums }) => {
    const tensors = Object.entries(fields).map(([name, batched]) => [name, decodeBatched(batched)] as const);
    const count = Number(numDatums) || (tensors[0]?.[1].length ?? 0);
    const short = tensors.find(([, { length }]) => length !== count);
    if (short !== undefined)
      throw invalidArgument(`A result has \`${short[0]}\` of ${short[1].length} of ${count} data.`);
    return Array.from({ length: count }, (_, i) =>
      Object.fromEntries(tensors.map(([name, data]) => [name, data[i]] as const)),
    );
  });
  return { lossFnOutputType: message.lossFnOutputType, lossFnOutputs, metrics: message.metrics };
}

function decodeBatched({ data, offsets: offsetBytes, dtype: code, trailingShape }: BatchedTensor): WireTensor[] {
  const dtype = fromDType(code);
  const offsets = decodeNumbers("int64", offsetBytes);
  const trailing = trailingShape.map(Number);
  const rowBytes = trailing.reduce((product, size) => product * size, DTYPE_BYTES[dtype]);
  return Array.from({ length: Math.max(0, offsets.length - 1) }, (_, i) => {
    const [start, end] = [offsets[i], offsets[i + 1]];
    if (!(start >= 0 && end >= start && end <= data.length))
      throw invalidArgument(`A result has the offsets ${start} and ${end} in ${data.length} bytes.`);
    const rows = rowBytes === 0 ? 0 : (end - start) / rowBytes;
    return checkTensor({ dtype, shape: [rows, ...trailing], data: decodeNumbers(dtype, data.subarray(start, end)) });
  });
}

/** Reads a message. @throws INVALID_ARGUMENT for bytes that are none. */
export function readMessage<Message>(name: string, read: () => Message): Message {
  try {
    return read();
  } catch (error) {
    throw invalidArgument(`The ${name} is not a valid protobuf message: ${errorMessage(error)}.`);
  }
}
