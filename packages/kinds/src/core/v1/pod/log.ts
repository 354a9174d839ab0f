import {
  type ConnectCall,
  type ConnectOptions,
  type ConnectSubresource,
  type FieldError,
  fieldError,
} from '@keelson/core';
import { pathOf, queryText } from '../../../connect/query.ts';
import type { Pod } from '../schema/index.ts';
import { containerChoice } from './container-choice.ts';

function validate(options: ConnectOptions): FieldError[] {
  const errors: FieldError[] = [];
  const atLeast = (field: string, least: number, detail: string) => {
    const value = options[field];
    if (typeof value === 'number' && value < least) errors.push(fieldError.invalid(field, value, detail));
  };
  atLeast('tailLines', 0, 'must be greater than or equal to 0');
  atLeast('limitBytes', 1, 'must be greater than 0');
  if (options['sinceSeconds'] !== undefined && options['sinceTime'] !== undefined) {
    errors.push(fieldError.forbidden('sinceTime', 'at most one of `sinceTime` or `sinceSeconds` may be specified'));
  } else atLeast('sinceSeconds', 1, 'must be greater than 0');
  return errors;
}

/** The log of a container as text; empty for a pod without a node. */
export const logSubresource: ConnectSubresource = {
  type: 'connect',
  name: 'log',
  verbs: ['get'],
  optionsKind: { group: '', version: 'v1', kind: 'PodLogOptions' },
  shownKind: { group: '', version: 'v1', kind: 'Pod' },
  parameters: [
    { name: 'container', type: 'string', description: 'Name of the container; required when the pod has several.' },
    { name: 'follow', type: 'boolean', description: 'Follow the log.' },
    {
      name: 'insecureSkipTLSVerifyBackend',
      type: 'boolean',
      description: 'Do not verify the certificate of the node agent.',
    },
    { name: 'limitBytes', type: 'integer', description: 'Maximum number of bytes to return.' },
    { name: 'previous', type: 'boolean', description: 'Return the log of the previous run of the container.' },
    { name: 'sinceSeconds', type: 'integer', description: 'Return only lines of the last so many seconds.' },
    { name: 'sinceTime', type: 'time', description: 'Return only lines since this time, in RFC 3339.' },
    { name: 'tailLines', type: 'integer', description: 'Return only this number of last lines.' },
    { name: 'timestamps', type: 'boolean', description: 'Add the time at the start of each line.' },
  ],
  skipsAdmission: true,
  upgrades: false,
  validate,
  locate({ parent: pod, options }: ConnectCall<Pod>) {
    const container = containerChoice(pod, options['container']);
    const { nodeName } = pod.spec;
    if (!nodeName) return { to: 'nothing' };
    const { follow, previous, timestamps, sinceSeconds, sinceTime, tailLines, limitBytes } = options;
    return {
      to: 'agent',
      node: nodeName,
      path: pathOf('containerLogs', pod.metadata?.namespace ?? '', pod.metadata?.name ?? '', container),
      query: queryText({ follow, previous, timestamps, sinceSeconds, sinceTime, tailLines, limitBytes }),
      anyCertificate: options['insecureSkipTLSVerifyBackend'] === true,
    };
  },
};
