import {
  type Body,
  type Brand,
  bodyMedia,
  type KindDefinition,
  type PatchBody,
  patchMediaTypes,
  patchTypeOfContent,
  protobufMediaType,
  statusErrors,
} from '@keelson/core';

/** Format of a body by its Content-Type; a missing one means JSON, an unknown one is 415 (api-conventions 3.1). */
export function bodyFormat(contentType: string | undefined, brand: Brand): Body['format'] {
  const media = bodyMedia(contentType, brand);
  if (media === undefined) {
    throw statusErrors.unsupportedMediaType(['application/json', 'application/yaml', protobufMediaType(brand)]);
  }
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
