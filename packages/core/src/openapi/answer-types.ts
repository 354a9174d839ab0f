import { type Brand, defaultBrand, jsonMediaType, protobufMediaType, yamlMediaType } from '../codec/media-type.ts';
import { servesProtobuf } from '../codec/protobuf/protobuf-form.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';

/** Media types of the responses about a kind, as OpenAPI documents list them. */
export interface AnswerTypes {
  readonly object: readonly string[];
  /** Media types of lists and watches. Streams have media types of their own. */
  readonly stream: readonly string[];
}

/** Media types of documents that belong to no kind, such as lists of resources. */
export function documentTypes(brand: Brand = defaultBrand): readonly string[] {
  return [jsonMediaType, yamlMediaType, protobufMediaType(brand)];
}

/** Media types of responses about a kind: protobuf only when the kind has field numbers. */
export function answerTypesOf(kind: KindDefinition, brand: Brand = defaultBrand): AnswerTypes {
  const object = servesProtobuf(kind) ? documentTypes(brand) : [jsonMediaType, yamlMediaType];
  const streams = object.filter((type) => type !== yamlMediaType).map((type) => `${type};stream=watch`);
  return { object, stream: [...object, ...streams] };
}
