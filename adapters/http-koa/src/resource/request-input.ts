import {
  type Body,
  type Brand,
  type DeleteParameters,
  deleteOptionsSchema,
  isDocumentError,
  type PatchBody,
  parseJson,
  parseProtobufBody,
  parseYaml,
  statusErrors,
} from '@keelson/core';
import { bodyFormat } from '../body/content-type.ts';
import { readBody } from '../body/read-body.ts';
import type { Exchange } from '../exchange.ts';
import { deleteParametersFromBody, deleteParametersFromQuery } from '../parameters/delete-parameters.ts';

/** Reads what comes with a request, within the limit on bodies. */
export class RequestInput {
  readonly #limitBytes: number;
  readonly #brand: Brand;

  constructor(limitBytes: number, brand: Brand) {
    this.#limitBytes = limitBytes;
    this.#brand = brand;
  }

  /** The body for the service to decode. @throws StatusError 413, 415 */
  async body(exchange: Exchange): Promise<Body> {
    const format = this.#format(exchange);
    return { bytes: await readBody(exchange, this.#limitBytes), format };
  }

  /** @throws StatusError 413 */
  async patch(exchange: Exchange, type: PatchBody['type']): Promise<PatchBody> {
    return { type, bytes: await readBody(exchange, this.#limitBytes) };
  }

  /**
   * The options of a DELETE, from its body, or without one from the query: see
   * docs/reference/api-rules.md#options-of-a-delete.
   *
   * @throws StatusError 400, 413, 415, 422
   */
  async deleteParameters(exchange: Exchange, apiVersion: string): Promise<DeleteParameters> {
    const bytes = await readBody(exchange, this.#limitBytes);
    if (bytes.length === 0) {
      const { query, verb } = exchange.attributes;
      return deleteParametersFromQuery(query, verb === 'deletecollection');
    }
    const format = this.#format(exchange);
    try {
      return deleteParametersFromBody(deleteOptions(bytes, format), apiVersion);
    } catch (error) {
      if (!isDocumentError(error)) throw error;
      throw statusErrors.badRequest(`DeleteOptions in the body cannot be decoded: ${error.message}`, error);
    }
  }

  #format(exchange: Exchange): Body['format'] {
    return bodyFormat(exchange.request, this.#brand);
  }
}

/** DeleteOptions in protobuf have one form in all the groups that know them. */
function deleteOptions(bytes: Buffer, format: Body['format']): unknown {
  if (format === 'protobuf') return parseProtobufBody(bytes, { kind: 'DeleteOptions', schema: deleteOptionsSchema });
  return (format === 'yaml' ? parseYaml(bytes) : parseJson(bytes)).value;
}
