import type { ObjectMeta } from '../meta/types.ts';
import type { Entry } from './store.ts';

/** Fields of objects that are owned, have finalizers or are being deleted. */
const tying = /"(?:ownerReferences|finalizers|deletionTimestamp)":/;

/** Characters that stand for themselves in JSON and are one byte in UTF-8. */
const plain = '[ !#-[\\]-~]*';

/** The first fields of canonical metadata, up to the uid. */
const identity = new RegExp(
  `^(?:"resourceVersion":"${plain}",)?"name":"(${plain})",(?:"generateName":"${plain}",)?(?:"namespace":"(${plain})",)?` +
    `(?:"selfLink":"${plain}",)?"uid":"(${plain})"`,
);

/**
 * Reads name, namespace and uid from the text of canonical metadata at a fraction of the cost of a parse. It succeeds
 * for objects without owners, finalizers and deletionTimestamp, which are most objects. `undefined` when the object may
 * have one of them, or when the text requires a parser. The text begins after the opening brace and may continue after
 * the metadata.
 */
export function plainIdentity(metadata: string): ObjectMeta | undefined {
  if (tying.test(metadata)) return undefined;
  const found = identity.exec(metadata);
  if (found === null) return undefined;
  const [, name = '', namespace, uid = ''] = found;
  return namespace === undefined ? { name, uid } : { name, namespace, uid };
}

/** Key of the secret that signs continue tokens. Keys of kinds begin with a slash, so no list or watch contains it. */
export const tokenSecretKey = '!keelson/continue-token-secret';

/** Prefix of encrypted values. The name of the encryption key and a colon follow it. */
export const encryptedPrefix = 'keelson:enc:aesgcm:v1:';
/** Maximum length of the name of an encryption key. */
export const maxKeyNameLength = 63;

/** The name of the key that a value is encrypted with; undefined for a value that is not encrypted. */
export function encryptionKeyOf(value: Uint8Array): string | undefined {
  // The first byte of an object is `{`.
  if (value[0] !== 0x6b || value.length <= encryptedPrefix.length) return undefined;
  const start = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString(
    'latin1',
    0,
    encryptedPrefix.length + maxKeyNameLength + 1,
  );
  const end = start.indexOf(':', encryptedPrefix.length);
  return start.startsWith(encryptedPrefix) && end !== -1 ? start.slice(encryptedPrefix.length, end) : undefined;
}

/** Why a corrupt entry cannot be read; the text continues a sentence that begins with its key. */
export function damageOf({ damage, value }: Entry): string {
  if (damage !== undefined) return damage;
  const name = encryptionKeyOf(value);
  if (name === undefined) return 'has no metadata';
  return `is encrypted with the key ${JSON.stringify(name)}, and the server has no --encryption-provider-config`;
}
