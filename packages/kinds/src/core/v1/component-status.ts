import {
  always,
  defineKind,
  type Infer,
  type KindDefinition,
  type KubeObject,
  optional,
  type ReadVirtual,
  type Schema,
  s,
} from '@keelson/core';
import { column, nameColumn } from '../../columns/columns.ts';

const componentCondition = s.message('k8s.io.api.core.v1.ComponentCondition', 'State of a component.', {
  type: always(1, s.string(), 'Type of the condition: Healthy.'),
  status: always(2, s.string(), 'True, False or Unknown.'),
  message: optional(3, s.string(), 'Message of the health check.'),
  error: optional(4, s.string(), 'Error of the health check.'),
});
export interface ComponentCondition extends Infer<typeof componentCondition> {}
export const ComponentConditionSchema: Schema<ComponentCondition> = componentCondition;

const componentStatus = s.message('k8s.io.api.core.v1.ComponentStatus', 'Health of a component. Deprecated.', {
  conditions: optional(2, s.listByKey(ComponentConditionSchema, 'type'), 'Observed conditions.'),
});
export interface ComponentStatus extends KubeObject, Infer<typeof componentStatus> {}
export const ComponentStatusSchema: Schema<ComponentStatus> = componentStatus;

const healthOf = ({ conditions = [] }: ComponentStatus) => conditions.find(({ type }) => type === 'Healthy');

function statusText(object: ComponentStatus): string {
  const condition = healthOf(object);
  if (condition === undefined) return 'Unknown';
  return condition.status === 'True' ? 'Healthy' : 'Unhealthy';
}

/** The health of the parts of the control plane, read from a function of the server; computed, never stored. */
export function componentStatusKind(read: ReadVirtual<ComponentStatus>): KindDefinition<ComponentStatus> {
  return defineKind({
    group: '',
    version: 'v1',
    kind: 'ComponentStatus',
    scope: 'Cluster',
    names: { plural: 'componentstatuses', shortNames: ['cs'] },
    schema: ComponentStatusSchema,
    columns: [
      nameColumn(),
      column('Status', 'string', 'Status of the component conditions', statusText),
      column(
        'Message',
        'string',
        'Message of the component conditions',
        (object: ComponentStatus) => healthOf(object)?.message ?? '',
      ),
      column(
        'Error',
        'string',
        'Error of the component conditions',
        (object: ComponentStatus) => healthOf(object)?.error ?? '',
      ),
    ],
    virtual: { read },
    deprecated: { since: '1.19' },
  });
}
