import { fs } from "#platform";
import { fromBinary } from "@bufbuild/protobuf";
import { ModelProtoSchema } from "../graph/onnx/onnx_pb.js";

/** Bytes of a weight as a kernel reads them. */
export interface PackedForm {
  readonly file: string;
  /**
   * The kernel, with a hash of the bytes: ONNX Runtime ignores forms that its kernel would pack in
   * another way.
   */
  readonly kernel: string;
  readonly parts: readonly { readonly offset: number; readonly byteLength: number; readonly rest: string }[];
}

/** Reads where ONNX Runtime has saved packed forms of a graph's weights. */
export async function readPackedForms(folder: string, name: string): Promise<ReadonlyMap<string, PackedForm[]>> {
  const { graph } = fromBinary(ModelProtoSchema, await fs.readBytes(fs.join(folder, `${name}.onnx`)));
  const file = fs.join(folder, `${name}.bin`);
  return new Map(
    (graph?.initializer ?? []).map((weight) => [
      weight.name,
      weight.externalData
        .filter(({ key }) => key.startsWith("prepacked_"))
        .map(({ value }) => ({ file, ...parsePackedForm(value) })),
    ]),
  );
}

/** Parses ONNX Runtime's "kernel+hash|offset;length;checksum|...". */
function parsePackedForm(value: string): Pick<PackedForm, "kernel" | "parts"> {
  const [kernel, ...parts] = value.split("|");
  const parsePart = (part: string) => {
    const [offset, byteLength, ...rest] = part.split(";");
    return { offset: Number(offset), byteLength: Number(byteLength), rest: rest.join(";") };
  };
  return { kernel, parts: parts.map(parsePart) };
}

/** Formats a packed form whose parts begin at other offsets of the weight's file. */
export function formatPackedForm({ kernel, parts }: PackedForm, offsets: readonly number[]): string {
  return [kernel, ...parts.map(({ byteLength, rest }, i) => [offsets[i], byteLength, rest].join(";"))].join("|");
}
