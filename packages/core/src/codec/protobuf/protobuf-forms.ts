import type { Status } from '../../meta/status.ts';
import { apiVersionOf } from '../../meta/types.ts';
import { type Brand, defaultBrand } from '../brand.ts';
import { protobufMediaType } from '../media-type.ts';
import { partialObjectMetadata } from '../partial-object-metadata.ts';
import type { FormBuilder } from '../representations.ts';
import { type DocumentForm, documentForms } from './document-schemas.ts';
import { envelopeHead } from './envelope.ts';
import { documentBytes, ProtobufForm } from './protobuf-form.ts';
import { metadataProtobuf, protobufField, servesProtobuf, statusDocument, wholeProtobuf } from './protobuf-shape.ts';

/**
 * The protobuf forms of all kinds, for `Representations`. Kinds without field numbers have only their metadata in
 * protobuf, and Tables have no protobuf form: see docs/reference/api-rules.md#content-negotiation.
 */
export function protobufForms(brand: Brand = defaultBrand): FormBuilder {
  return {
    media: 'protobuf',
    targets: [partialObjectMetadata],
    serves: servesProtobuf,
    servesTargets: () => true,
    streams: true,
    form: (kind, { target }) => {
      if (target.as === 'Table') throw new Error('tables have no protobuf form');
      const shape =
        target.as === 'Object'
          ? wholeProtobuf(kind)
          : metadataProtobuf(kind, apiVersionOf({ group: brand.metaGroup, version: target.version }));
      return new ProtobufForm(shape, protobufMediaType(brand));
    },
  };
}

/** The body of a Status. */
export function encodeProtobufStatus(status: Status): Buffer {
  return documentBytes(statusDocument(status));
}

/**
 * The body of a document that belongs to no kind: a Status or a plain discovery document.
 *
 * @throws Error for documents that have no protobuf form.
 */
export function encodeProtobufDocument(document: object): Buffer {
  const value = document as Readonly<Record<string, unknown>>;
  const { kind } = value;
  const form: DocumentForm | undefined =
    typeof kind === 'string' && Object.hasOwn(documentForms, kind) ? documentForms[kind] : undefined;
  if (form === undefined) throw new Error(`a document of kind ${JSON.stringify(kind)} has no protobuf form`);
  const field = protobufField(form.schema, form.shape?.(value) ?? value);
  return documentBytes({ head: envelopeHead('v1', String(kind)), field });
}
