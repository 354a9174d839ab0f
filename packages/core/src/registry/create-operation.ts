import { statusErrors } from '../errors/status-error.ts';
import { isStorageError, StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { RequestContext } from '../meta/request-context.ts';
import { objectKey } from '../scope/storage-key.ts';
import type { WriteOptions } from '../storage/resource-storage.ts';
import { decodeObject, parseBody, settleType } from './decode-body.ts';
import { checkFields } from './field-validation.ts';
import type { AnyObject } from './json-values.ts';
import { nameAttempts } from './name-generator.ts';
import { prepareNewObject } from './new-object.ts';
import { requiredNamespace, settleNamespace } from './object-target.ts';
import type { ResourceBinding } from './resource-binding.ts';
import type { Answer, Body, Target, WriteParameters } from './resource-service.ts';
import { nextTurn } from './turns.ts';
import { warningOnce } from './warning-once.ts';

/** An object that is ready to be stored. */
interface NewObject {
  readonly key: string;
  readonly name: string;
  /** The server has made the name up. */
  readonly generated: boolean;
  readonly json: Buffer;
  readonly ttlMs: number | undefined;
  /** The object itself, for the answer to a dry run. */
  readonly shown: AnyObject | undefined;
}

/** POST of a collection: see docs/reference/api-rules.md#order-of-a-write. */
export class CreateOperation {
  readonly #binding: ResourceBinding;

  constructor(binding: ResourceBinding) {
    this.#binding = binding;
  }

  async run(caller: RequestContext, target: Target, body: Body, parameters: WriteParameters): Promise<Answer> {
    const binding = this.#binding;
    const { kind } = binding;
    const context = warningOnce(caller);
    binding.requireVerb('create');
    for (let attempt = 1; ; attempt++) {
      const made = await this.#make(context, target, body, parameters);
      context.signal?.throwIfAborted();
      try {
        if (made.shown !== undefined) return await this.#dryRun(context, made.key, made.shown);
        return {
          stored: await this.#binding.storage.create(made.key, made.json, storeOptions(context, made.ttlMs)),
          kind,
          code: 201,
        };
      } catch (error) {
        if (!isStorageError(error, StorageErrorCode.AlreadyExists)) throw error;
        if (!made.generated) throw await this.#taken(made.key, made.name);
        if (attempt === nameAttempts) throw statusErrors.generateNameCollision(binding.resource, made.name);
      }
    }
  }

  /** Each attempt at a name begins with the body, so that nothing but bytes is held while the store writes. */
  async #make(context: RequestContext, target: Target, body: Body, parameters: WriteParameters): Promise<NewObject> {
    const binding = this.#binding;
    const { kind, bodyType } = binding;
    const namespace = requiredNamespace(kind, target);
    const parsed = parseBody(bodyType, body, parameters.fieldValidation !== 'Ignore');
    settleType(bodyType, parsed.value);
    await nextTurn(body.bytes.length);
    const decoded = decodeObject(bodyType, parsed.value);
    checkFields(
      parameters.fieldValidation,
      { unknownFields: decoded.unknownFields, duplicateFields: parsed.duplicateFields },
      context,
    );
    settleNamespace(namespace, decoded.object);
    const generated = !decoded.object.metadata?.name;
    await nextTurn(body.bytes.length);
    const object = await prepareNewObject(binding, context, decoded, parameters.dryRun);
    await nextTurn(body.bytes.length);
    const name = object.metadata?.name ?? '';
    return {
      key: objectKey(kind, namespace, name),
      name,
      generated,
      json: binding.encode(object),
      ttlMs: kind.strategy.ttlMs?.(object),
      shown: parameters.dryRun ? object : undefined,
    };
  }

  async #dryRun(context: RequestContext, key: string, shown: AnyObject): Promise<Answer> {
    if (await this.#binding.storage.get(key, { at: 'latest' }, storeOptions(context, undefined))) {
      throw new StorageError(StorageErrorCode.AlreadyExists, `key ${key} exists`, { key });
    }
    return { object: shown, code: 201 };
  }

  /** Says so when the name will soon be free again. */
  async #taken(key: string, name: string) {
    const existing = await this.#binding.storage.get(key, { at: 'latest' });
    const leaving = existing?.value().metadata?.deletionTimestamp !== undefined;
    return statusErrors.alreadyExists(this.#binding.resource, name, leaving);
  }
}

function storeOptions({ signal }: RequestContext, ttlMs: number | undefined): WriteOptions {
  if (ttlMs === undefined) return signal === undefined ? {} : { signal };
  return signal === undefined ? { ttlMs } : { ttlMs, signal };
}
