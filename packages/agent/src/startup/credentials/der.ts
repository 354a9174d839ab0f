function lengthOctets(length: number): number[] {
  if (length < 0x80) return [length];
  const octets: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) octets.unshift(rest % 256);
  return [0x80 | octets.length, ...octets];
}

/** Encodes one value in DER (X.690): a tag octet, the length, and the parts of its content. */
export function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag, ...lengthOctets(content.length)]), content]);
}

export const sequence = (...parts: readonly Buffer[]): Buffer => der(0x30, ...parts);

/** Encodes a bit string of whole octets. */
export const bitString = (octets: Buffer): Buffer => der(0x03, Buffer.of(0), octets);

/** Encodes an object identifier from the octets of its content. */
const identifier = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'));

const attributeTypes = { CN: identifier('550403'), O: identifier('55040a') };

/** Encodes a distinguished name (X.501) of these attributes, in this order. */
export function distinguishedName(...attributes: readonly (readonly [type: 'CN' | 'O', value: string])[]): Buffer {
  const parts = attributes.map(([type, value]) =>
    der(0x31, sequence(attributeTypes[type], der(0x0c, Buffer.from(value, 'utf8')))),
  );
  return sequence(...parts);
}

/** The algorithm identifier of ECDSA with SHA-256. */
export const ecdsaWithSha256 = sequence(identifier('2a8648ce3d040302'));

/** Encodes a PEM block. */
export function pem(label: string, content: Buffer): string {
  const lines = content.toString('base64').match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}
