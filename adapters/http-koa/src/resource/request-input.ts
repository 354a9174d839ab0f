import {
  type Body,
  type DeleteParameters,
  isDocumentError,
  type PatchBody,
  parseJson,
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

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** The body for the service to decode. @throws StatusError 413, 415 */
  async body(exchange: Exchange): Promise<Body> {
    const format = bodyFormat(exchange.request.headers['content-type']);
    return { bytes: await readBody(exchange, this.#limitBytes), format };
  }

  /** @throws StatusError 413 */
  async patch(exchange: Exchange, type: PatchBody['type']): Promise<PatchBody> {
    return { type, bytes: await readBody(exchange, this.#limitBytes) };
  }

  /**
   * Options of a DELETE. A body decides alone; only without one the query is looked at (api-conventions 8.2).
   *
   * @throws StatusError 400, 413, 415, 422
   */
  async deleteParameters(exchange: Exchange, apiVersion: string): Promise<DeleteParameters> {
    const bytes = await readBody(exchange, this.#limitBytes);
    if (bytes.length === 0) return deleteParametersFromQuery(exchange.attributes.query);
    const format = bodyFormat(exchange.request.headers['content-type']);
    try {
      const { value } = format === 'yaml' ? parseYaml(bytes) : parseJson(bytes);
      return deleteParametersFromBody(value, apiVersion);
    } catch (error) {
      if (!isDocumentError(error)) throw error;
      throw statusErrors.badRequest(`DeleteOptions in the body cannot be decoded: ${error.message}`, error);
    }
  }
}
