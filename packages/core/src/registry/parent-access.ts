import type { ParentAccess } from '../kind/subresource.ts';
import type { RequestContext } from '../meta/request-context.ts';
import { decodeObject } from './decode-body.ts';
import type { DeleteOperation } from './delete-operation.ts';
import type { GetOperation } from './get-operation.ts';
import type { AnyObject } from './json-values.ts';
import type { ObjectTarget } from './object-target.ts';
import type { ObjectWriter, WriteMode } from './object-writer.ts';
import type { ResourceBinding } from './resource-binding.ts';

/** The operations through which a subresource reaches its parent. */
export interface ParentOperations {
  readonly get: GetOperation;
  readonly writer: ObjectWriter;
  readonly remove: DeleteOperation;
}

/** Parent of an action: every change goes the way of an ordinary write, under the name of the subresource. */
export class StoredParent implements ParentAccess<AnyObject> {
  readonly namespace: string | undefined;
  readonly name: string;
  readonly #binding: ResourceBinding;
  readonly #operations: ParentOperations;
  readonly #context: RequestContext;
  readonly #target: ObjectTarget;
  readonly #subresource: string;

  constructor(
    binding: ResourceBinding,
    operations: ParentOperations,
    context: RequestContext,
    target: ObjectTarget,
    subresource: string,
  ) {
    this.namespace = target.namespace;
    this.name = target.name;
    this.#binding = binding;
    this.#operations = operations;
    this.#context = context;
    this.#target = target;
    this.#subresource = subresource;
  }

  async get(): Promise<AnyObject> {
    return this.#binding.read(await this.#operations.get.stored(this.#context, this.#target));
  }

  async update(
    change: (parent: AnyObject) => void,
    options: {
      readonly as?: WriteMode;
      readonly resourceVersion?: string;
      readonly uid?: string;
      readonly dryRun?: boolean;
    } = {},
  ): Promise<AnyObject> {
    const written = await this.#operations.writer.write({
      context: this.#context,
      target: this.#target,
      subresource: this.#subresource,
      mode: options.as ?? 'spec',
      dryRun: options.dryRun ?? false,
      propose: (_old, current) => {
        const parent = this.#binding.read(current);
        change(parent);
        const decoded = decodeObject(this.#binding.bodyType, parent);
        decoded.object.metadata = {
          ...decoded.object.metadata,
          ...(options.resourceVersion ? { resourceVersion: options.resourceVersion } : {}),
          ...(options.uid ? { uid: options.uid } : {}),
        };
        return decoded;
      },
    });
    return written.stored ? this.#binding.read(written.stored) : written.object;
  }

  async delete(options: {
    readonly gracePeriodSeconds?: number;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly dryRun?: boolean;
  }): Promise<void> {
    await this.#operations.remove.remove(this.#context, this.#target, { ...options, dryRun: options.dryRun ?? false });
  }
}
