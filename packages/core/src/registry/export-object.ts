import type { KindDefinition } from '../kind/kind-definition.ts';
import type { StrategyContext } from '../kind/strategy.ts';
import type { AnyObject } from './json-values.ts';
import { keepsGeneration } from './stamp-metadata.ts';
import { clearStatus } from './status-isolation.ts';

/** Removes what would prevent a create elsewhere: see docs/reference/api-rules.md#export. Changes `object`. */
export function exportObject(kind: KindDefinition, object: AnyObject, exact: boolean, context: StrategyContext): void {
  const meta = object.metadata ?? {};
  object.metadata = meta;
  delete meta.uid;
  delete meta.creationTimestamp;
  delete meta.deletionTimestamp;
  delete meta.deletionGracePeriodSeconds;
  delete meta.resourceVersion;
  delete meta.selfLink;
  if (!exact) {
    delete meta.namespace;
    if (meta.generateName) delete meta.name;
  }
  if (kind.strategy.export) {
    kind.strategy.export(object, exact);
    return;
  }
  if (kind.strategy.statusSubresource) clearStatus(kind, object);
  if (keepsGeneration(kind)) meta.generation = 1;
  kind.strategy.prepareForCreate?.(object, context);
}
