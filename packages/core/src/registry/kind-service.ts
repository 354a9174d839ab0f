import type { Verb } from '../kind/kind-definition.ts';
import type { RequestContext } from '../meta/request-context.ts';
import { ConnectOperation } from './connect-operation.ts';
import { CreateOperation } from './create-operation.ts';
import { DeleteOperations } from './delete-operations.ts';
import { ObjectWriter } from './object-writer.ts';
import { ReadOperations } from './read-operations.ts';
import type { ResourceBinding } from './resource-binding.ts';
import type { ResourceService, Target } from './resource-service.ts';
import { SubresourceOperations } from './subresource-operations.ts';
import { translateError } from './translate-error.ts';
import { UpdateOperations } from './update-operations.ts';

/** The service of a kind whose objects are stored. Every error of an operation becomes a StatusError. */
export function createKindService(binding: ResourceBinding): ResourceService {
  const reads = new ReadOperations(binding);
  const writer = new ObjectWriter(binding);
  const updates = new UpdateOperations(binding, writer);
  const deletes = new DeleteOperations(binding, reads);
  const creates = new CreateOperation(binding);
  const subresources = new SubresourceOperations(binding, { reads, writer, updates, deletes });
  const connects = new ConnectOperation(binding, reads);

  /** Adds the translation of errors to an operation; `revisionOf` gives the resourceVersion in its parameters. */
  function operation<Rest extends unknown[], Result>(
    verb: Verb,
    run: (context: RequestContext, target: Target, ...rest: Rest) => Promise<Result>,
    revisionOf?: (...rest: Rest) => string,
  ): (context: RequestContext, target: Target, ...rest: Rest) => Promise<Result> {
    return async (context, target, ...rest) => {
      try {
        return await run(context, target, ...rest);
      } catch (error) {
        const revision = revisionOf?.(...rest) ?? '';
        throw translateError(error, {
          verb,
          resource: binding.resource,
          name: target.name ?? '',
          ...(revision === '' ? {} : { revision: Number(revision) }),
          ...(context.signal ? { signal: context.signal } : {}),
        });
      }
    };
  }

  return {
    kind: binding.kind,
    create: operation('create', (...call) => creates.run(...call)),
    get: operation(
      'get',
      (...call) => reads.get(...call),
      ({ resourceVersion }) => resourceVersion,
    ),
    list: operation(
      'list',
      (...call) => reads.list(...call),
      ({ resourceVersion }) => resourceVersion,
    ),
    watch: operation(
      'watch',
      (...call) => reads.watch(...call),
      ({ resourceVersion }) => resourceVersion,
    ),
    update: operation('update', (context, target, body, parameters) =>
      updates.update(context, target, body, parameters),
    ),
    patch: operation('patch', (context, target, patch, parameters) =>
      updates.patch(context, target, patch, parameters),
    ),
    delete: operation('delete', (...call) => deletes.delete(...call)),
    deleteCollection: operation(
      'deletecollection',
      (...call) => deletes.deleteCollection(...call),
      (_parameters, { resourceVersion }) => resourceVersion,
    ),
    getSubresource: operation('get', (...call) => subresources.get(...call)),
    updateSubresource: operation('update', (...call) => subresources.update(...call)),
    patchSubresource: operation('patch', (...call) => subresources.patch(...call)),
    createSubresource: operation('create', (...call) => subresources.create(...call)),
    connect: operation('get', (...call) => connects.run(...call)),
  };
}
