import { type Column, defineKind, type FieldError, fieldError, type KindDefinition } from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { checkRange, type Errors, newErrors, sameJson } from '../../validation/checks.ts';
import { defaultPriorityLevels } from './default-objects.ts';
import { conditionErrors } from './flow-schema.ts';
import {
  type ExemptPriorityLevelConfiguration,
  type LimitedPriorityLevelConfiguration,
  type LimitResponse,
  PriorityLevelConfigurationSchema,
  type PriorityLevelConfigurationSpec,
  type PriorityLevelConfiguration as PriorityLevelConfigurationType,
  type QueuingConfiguration,
} from './schema.ts';

const maxQueues = 10_000_000;
/** Bits of the hash that Kubernetes divides into the numbers of the queues of a flow. */
const hashBits = 60;

const queuingOf = ({ spec }: PriorityLevelConfigurationType) => spec.limited?.limitResponse.queuing;
const columns: readonly Column<PriorityLevelConfigurationType>[] = [
  nameColumn(),
  column('Type', 'string', 'Limited or Exempt.', ({ spec }) => spec.type),
  column(
    'NominalConcurrencyShares',
    'string',
    'Share of the seats of the server.',
    ({ spec }) => spec.limited?.nominalConcurrencyShares ?? '<none>',
  ),
  column('Queues', 'string', 'Number of queues.', (object) => queuingOf(object)?.queues ?? '<none>'),
  column('HandSize', 'string', 'Queues of a flow.', (object) => queuingOf(object)?.handSize ?? '<none>'),
  column(
    'QueueLengthLimit',
    'string',
    'Waiting requests of a queue.',
    (object) => queuingOf(object)?.queueLengthLimit ?? '<none>',
  ),
  ageColumn,
];

/** A priority level of flow control. */
export const PriorityLevelConfiguration: KindDefinition<PriorityLevelConfigurationType> = defineKind({
  group: 'flowcontrol.apiserver.k8s.io',
  version: 'v1',
  kind: 'PriorityLevelConfiguration',
  scope: 'Cluster',
  schema: PriorityLevelConfigurationSchema,
  strategy: {
    generation: 'spec',
    default: ({ spec }) => setDefaults(spec),
    validate: validateLevel,
    validateStatusUpdate: ({ status }) => conditionErrors(status?.conditions),
  },
  subresources: [{ type: 'status', name: 'status' }],
  columns,
});
export type PriorityLevelConfiguration = PriorityLevelConfigurationType;

function setDefaults({ limited, exempt }: PriorityLevelConfigurationSpec): void {
  if (exempt !== undefined) {
    exempt.nominalConcurrencyShares ??= 0;
    exempt.lendablePercent ??= 0;
  }
  if (limited === undefined) return;
  limited.nominalConcurrencyShares ??= 30;
  limited.lendablePercent ??= 0;
  const { queuing } = limited.limitResponse;
  if (queuing === undefined) return;
  queuing.handSize ||= 8;
  queuing.queues ||= 64;
  queuing.queueLengthLimit ||= 50;
}

function validateLevel({ metadata, spec }: PriorityLevelConfigurationType): FieldError[] {
  const errors = newErrors();
  const name = metadata?.name ?? '';
  const { type, limited, exempt } = spec;
  if ((name === 'exempt') !== (type === 'Exempt')) {
    errors.push(fieldError.invalid('spec.type', type, "must be 'Exempt' if and only if `name` is 'exempt'"));
  }
  if (type === 'Exempt') {
    if (limited) errors.push(fieldError.forbidden('spec.limited', 'must be nil if the type is not Limited'));
    if (exempt) checkShares(exempt, 'spec.exempt', errors);
  } else if (type === 'Limited') {
    if (exempt) errors.push(fieldError.forbidden('spec.exempt', 'must be nil if the type is Limited'));
    if (limited) checkLimited(limited, 'spec.limited', errors);
    else errors.push(fieldError.required('spec.limited', 'must not be empty when type is Limited'));
  } else errors.push(fieldError.notSupported('spec.type', type, ['Exempt', 'Limited']));
  checkFixed(name, spec, errors);
  return errors;
}

/** The level `catch-all` cannot be changed, and of `exempt` only the field of that name. */
function checkFixed(name: string, spec: PriorityLevelConfigurationSpec, errors: Errors): void {
  const expected = defaultPriorityLevels.find((level) => level.metadata?.name === name)?.spec;
  if (name === 'exempt') {
    if (sameJson({ ...spec, exempt: expected?.exempt }, expected)) return;
    const text = `spec of '${name}' except the 'spec.exempt' field must equal the fixed value`;
    errors.push(fieldError.invalid('spec', spec, text));
  } else if (name === 'catch-all' && !sameJson(spec, expected)) {
    errors.push(fieldError.invalid('spec', spec, `spec of '${name}' must equal the fixed value`));
  }
}

type Shares = Pick<ExemptPriorityLevelConfiguration, 'nominalConcurrencyShares' | 'lendablePercent'>;

function checkShares({ nominalConcurrencyShares = 0, lendablePercent }: Shares, path: string, errors: Errors): void {
  const at = `${path}.nominalConcurrencyShares`;
  if (nominalConcurrencyShares < 0) {
    errors.push(fieldError.invalid(at, nominalConcurrencyShares, 'must be a non-negative integer'));
  }
  checkRange(lendablePercent, 0, 100, `${path}.lendablePercent`, errors);
}

function checkLimited(limited: LimitedPriorityLevelConfiguration, path: string, errors: Errors): void {
  const { limitResponse, borrowingLimitPercent } = limited;
  checkShares(limited, path, errors);
  checkLimitResponse(limitResponse, `${path}.limitResponse`, errors);
  if (borrowingLimitPercent !== undefined && borrowingLimitPercent < 0) {
    const at = `${path}.borrowingLimitPercent`;
    errors.push(fieldError.invalid(at, borrowingLimitPercent, 'if specified, must be a non-negative integer'));
  }
}

function checkLimitResponse({ type, queuing }: LimitResponse, path: string, errors: Errors): void {
  const at = `${path}.queuing`;
  if (type === 'Reject') {
    if (queuing) errors.push(fieldError.forbidden(at, 'must be nil if limited.limitResponse.type is not Limited'));
  } else if (type === 'Queue') {
    if (queuing) checkQueuing(queuing, at, errors);
    else errors.push(fieldError.required(at, 'must not be empty if limited.limitResponse.type is Limited'));
  } else errors.push(fieldError.notSupported(`${path}.type`, type, ['Queue', 'Reject']));
}

function checkQueuing({ queues, handSize, queueLengthLimit }: QueuingConfiguration, path: string, errors: Errors) {
  const invalid = (field: keyof QueuingConfiguration, value: number, text: string) =>
    errors.push(fieldError.invalid(`${path}.${field}`, value, text));
  if (queueLengthLimit <= 0) invalid('queueLengthLimit', queueLengthLimit, 'must be positive');
  if (queues <= 0) invalid('queues', queues, 'must be positive');
  else if (queues > maxQueues) invalid('queues', queues, `must not be greater than ${maxQueues}`);
  const entropy = Math.ceil(Math.log2(queues) * handSize);
  if (handSize <= 0) invalid('handSize', handSize, 'must be positive');
  else if (handSize > queues) invalid('handSize', handSize, `should not be greater than queues (${queues})`);
  else if (entropy > hashBits) {
    const sizes = `deckSize ${queues} and handSize ${handSize}`;
    invalid('handSize', handSize, `required entropy bits of ${sizes} should not be greater than ${hashBits}`);
  }
}
