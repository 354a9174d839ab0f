import { RuntimeError } from './runtime-error.ts';

/** Parts of a reference like `registry.example:5000/team/app:1.2@sha256:...`. */
export interface ImageReference {
  /** Registry and path without changes; no default registry is added. */
  readonly name: string;
  readonly tag?: string;
  readonly digest?: string;
}

const component = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*';
const domain = '(?:[a-zA-Z0-9](?:[a-zA-Z0-9-.]*[a-zA-Z0-9])?|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?';
const pattern = new RegExp(
  `^((?:${domain}/)?${component}(?:/${component})*)(?::([\\w][\\w.-]{0,127}))?(?:@([a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-fA-F]{32,}))?$`,
);

/** @throws `InvalidArgument` */
export function parseImageReference(text: string): ImageReference {
  const match = text.length <= 4096 ? pattern.exec(text) : null;
  const [, name, tag, digest] = match ?? [];
  if (name === undefined) throw new RuntimeError('InvalidArgument', `not an image reference: "${text.slice(0, 256)}"`);
  return { name, ...(tag !== undefined && { tag }), ...(digest !== undefined && { digest }) };
}

/** Adds the tag `latest` to a reference without tag and digest. @throws `InvalidArgument` */
export function normalizeImageReference(text: string): string {
  const { name, tag, digest } = parseImageReference(text);
  if (digest !== undefined) return `${name}@${digest}`;
  return `${name}:${tag ?? 'latest'}`;
}
