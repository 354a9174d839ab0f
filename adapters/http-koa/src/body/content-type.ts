import {
  type Body,
  bodyMedia,
  type KindDefinition,
  type PatchBody,
  patchMediaTypes,
  patchTypeOfContent,
  statusErrors,
} from '@keelson/core';

/** Media types of bodies that can be read. */
const readable = ['application/json', 'application/yaml'];

/** Format of a body by its Content-Type; a missing one means JSON, an unknown one is 415 (api-conventions 3.1). */
export function bodyFormat(contentType: string | undefined): Body['format'] {
  const media = bodyMedia(contentType);
  if (media === undefined || media === 'protobuf') throw statusErrors.unsupportedMediaType(readable);
  return media;
}

/** Type of a patch by its Content-Type; 415 for everything the kind does not offer. There is no default. */
export function patchType(contentType: string | undefined, kind: KindDefinition): PatchBody['type'] {
  const type = patchTypeOfContent(contentType);
  if (type === undefined || (type === 'strategic' && !kind.structural)) {
    const offered = Object.entries(patchMediaTypes).filter(([, candidate]) => candidate !== 'strategic' || kind.structural);
    throw statusErrors.unsupportedMediaType(offered.map(([mediaType]) => mediaType));
  }
  return type;
}
