/** An error of a request over HTTP. */
export class HttpError extends Error {
  /** `status` is the HTTP status. */
  constructor(
    readonly status: number,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
