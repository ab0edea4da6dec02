// The package's own declarations import their parts without file extensions, which TypeScript does not resolve for ES
// modules in Node; these declare what this folder uses of them.
declare module "@huggingface/hub" {
  interface Access {
    readonly hubUrl?: string;
    readonly fetch?: typeof fetch;
  }

  export function modelInfo(
    params: Access & {
      readonly name: string;
      readonly revision?: string;
      readonly additionalFields?: readonly "sha"[];
    },
  ): Promise<{ readonly sha?: unknown }>;

  export function listFiles(
    params: Access & {
      readonly repo: { readonly type: "model"; readonly name: string };
      readonly revision?: string;
      readonly recursive?: boolean;
    },
  ): AsyncGenerator<{
    readonly type: string;
    readonly path: string;
    readonly size: number;
    readonly oid?: string;
    readonly lfs?: { readonly oid: string; readonly size: number };
  }>;
}
