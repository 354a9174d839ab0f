import { createRequire } from 'node:module';

type Library = typeof import('protobufjs/minimal.js');

const require = createRequire(import.meta.url);
let loaded: Library | undefined;

/** Readers and writers of the wire format, loaded on first use: many processes never see protobuf. */
export function library(): Library {
  loaded ??= require('protobufjs/minimal.js') as Library;
  return loaded;
}
