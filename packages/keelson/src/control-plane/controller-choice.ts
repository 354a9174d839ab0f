import type { AnyController } from '@keelson/controller-kit';
import { workloadControllers } from '@keelson/controllers';
import { didYouMean, UsageError } from '@keelson/core/internal';

/**
 * Which controllers run. Names have the notation of kube-controller-manager: `*` for all, a name, `-NAME` for all
 * others; the first entry that names a controller decides about it. `api` is the set of controllers that the API itself
 * needs. Controllers of the program itself are entries too. True: the set `api`; false: none.
 */
export type ControllersOption = boolean | readonly (string | AnyController)[];

/**
 * Controllers without which objects of the API remain incomplete or cannot be deleted, or limits that servers enforce
 * (quotas, disruption budgets) are unknown.
 */
const apiControllers = [
  'certificatesigningrequest-signing-controller',
  'clusterrole-aggregation-controller',
  'disruption-controller',
  'garbage-collector-controller',
  'namespace-controller',
  'persistentvolume-protection-controller',
  'persistentvolumeclaim-protection-controller',
  'pod-garbage-collector-controller',
  'resourcequota-controller',
  'serviceaccount-controller',
  'serviceaccount-token-controller',
  'service-cidr-controller',
  'token-cleaner-controller',
  'validatingadmissionpolicy-status-controller',
] as const;

export type ApiControllerName = (typeof apiControllers)[number];

/** The controllers to run. */
export interface ControllerChoice {
  readonly api: readonly ApiControllerName[];
  /** Controllers of workloads, services and nodes, and those of the program. */
  readonly workloads: readonly AnyController[];
  /** Run the scheduler, which assigns pods to nodes. */
  readonly scheduler: boolean;
}

const scheduler = 'scheduler';

/**
 * Selects controllers.
 *
 * @param source the option in messages
 * @throws UsageError
 */
export function chooseControllers(option: ControllersOption, source = 'controllers'): ControllerChoice {
  const entries = typeof option === 'boolean' ? (option ? ['api'] : []) : option;
  const own = entries.filter((entry) => typeof entry !== 'string');
  const names = entries.filter((entry) => typeof entry === 'string');
  checkNames(names, own, source);
  const isChosen = (name: string, otherwise: boolean) => {
    const decisive = names.find((entry) => entry === name || entry === `-${name}`);
    return decisive === undefined ? otherwise : decisive === name;
  };
  const all = names.includes('*');
  const api = isChosen('api', all);
  return {
    api: apiControllers.filter((name) => isChosen(name, api)),
    workloads: [
      ...workloadControllers.filter(({ name }) => isChosen(name, all)),
      ...own.filter(({ name }) => isChosen(name, true)),
    ],
    scheduler: isChosen(scheduler, all),
  };
}

function checkNames(names: readonly string[], own: readonly AnyController[], source: string): void {
  const known = ['api', ...apiControllers, ...[...workloadControllers, ...own].map(({ name }) => name), scheduler];
  for (const entry of names) {
    const name = entry.replace(/^-/, '');
    if (entry === '*' || known.includes(name)) continue;
    const hint = didYouMean(name, known, `; known are *, ${known.join(', ')}`);
    throw new UsageError(`${source}: unknown controller ${JSON.stringify(name)}${hint}`);
  }
  if (names.length > 0 && own.length === 0 && names.every((entry) => entry.startsWith('-')))
    throw new UsageError(`${source} "${names.join(',')}" selects no controller; use "*,${names.join(',')}"`);
}
