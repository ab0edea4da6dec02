const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
export const encodeUtf8 = (text) => encoder.encode(text);
/** Decodes UTF-8; invalid bytes become U+FFFD, and a byte order mark is kept. */
export const decodeUtf8 = (bytes) => decoder.decode(bytes);
/** Returns the bytes of a view's values, without a copy. */
export function viewBytes({ buffer, byteOffset, byteLength }) {
    return new Uint8Array(buffer, byteOffset, byteLength);
}
/** Decodes each byte to the character with that code. */
export function decodeLatin1(bytes) {
    let text = "";
    for (const byte of bytes)
        text += String.fromCharCode(byte);
    return text;
}
export function concatBytes(parts) {
    const result = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
    let offset = 0;
    for (const part of parts) {
        result.set(part, offset);
        offset += part.length;
    }
    return result;
}
/** Compares bytes in lexicographic order: negative, 0 or positive. */
export function compareBytes(a, b) {
    const length = Math.min(a.length, b.length);
    for (let i = 0; i < length; i++)
        if (a[i] !== b[i])
            return a[i] - b[i];
    return a.length - b.length;
}
