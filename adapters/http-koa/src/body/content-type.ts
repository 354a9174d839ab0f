import type { IncomingMessage } from 'node:http';
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
import { mayHaveBody } from '../connect/headers.ts';

/**
 * The end of the user agent of client-go, whose raw calls (`kubectl create --raw`) send bodies without a type. No page
 * can set it unasked.
 */
const clientGo = /\) kubernetes\//;

/**
 * True for a body without a type that a page may have sent: browsers ask the server before they send any other method,
 * type or user agent to another site, but not for this. A bearer token is never sent by a browser on its own.
 */
function maybeOfPage(request: IncomingMessage): boolean {
  const { method, headers } = request;
  if (method !== 'POST' || headers.authorization !== undefined) return false;
  return mayHaveBody(request) && !clientGo.test(headers['user-agent'] ?? '');
}

/**
 * Format of a body by its Content-Type. A missing one means JSON, as in reference servers, except where a web page may
 * be the sender (docs/adr/0029). @throws StatusError 415
 */
export function bodyFormat(request: IncomingMessage, brand: Brand): Body['format'] {
  const contentType = request.headers['content-type'];
  const untyped = contentType === undefined || contentType.trim() === '';
  const media = untyped && maybeOfPage(request) ? undefined : bodyMedia(contentType, brand);
  if (media === undefined) {
    throw statusErrors.unsupportedMediaType(['application/json', 'application/yaml', protobufMediaType(brand)]);
  }
  return media;
}

/** Type of a patch by its Content-Type; 415 for everything the kind does not offer. There is no default. */
export function patchType(contentType: string | undefined, kind: KindDefinition): PatchBody['type'] {
  const type = patchTypeOfContent(contentType);
  if (type === undefined || (type === 'strategic' && !kind.structural)) {
    const offered = Object.entries(patchMediaTypes).filter(
      ([, candidate]) => candidate !== 'strategic' || kind.structural,
    );
    throw statusErrors.unsupportedMediaType(offered.map(([mediaType]) => mediaType));
  }
  return type;
}
