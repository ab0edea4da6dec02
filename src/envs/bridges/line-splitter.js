const LINE_FEED = 10;
/** Splits a stream of bytes into lines of bounded length. */
export class LineSplitter {
    maxBytes;
    chunks = [];
    length = 0;
    constructor(maxBytes) {
        this.maxBytes = maxBytes;
    }
    /** Whether the unfinished line is longer than `maxBytes`; the stream should then be ended. */
    get isTooLong() {
        return this.length > this.maxBytes;
    }
    /** Returns the lines that `data` completes. */
    push(data) {
        const lines = [];
        let start = 0;
        for (let end = data.indexOf(LINE_FEED); end >= 0; end = data.indexOf(LINE_FEED, start)) {
            lines.push(Buffer.concat([...this.chunks, data.subarray(start, end)]).toString("utf8"));
            this.chunks = [];
            this.length = 0;
            start = end + 1;
        }
        this.length += data.length - start;
        if (this.isTooLong)
            this.chunks = [];
        else
            this.chunks.push(data.subarray(start));
        return lines;
    }
}
