import { kubectlTest } from '../../src/kubectl-cluster.ts';
import { registerDeleteScenarios } from '../../src/scenarios/kubectl-delete.ts';
import { registerReadScenarios } from '../../src/scenarios/kubectl-read.ts';
import { registerWriteScenarios } from '../../src/scenarios/kubectl-write.ts';

// Two servers on one etcd; every connection of kubectl goes to the other one.
const test = await kubectlTest({ backend: 'etcd' });
registerReadScenarios(test);
registerWriteScenarios(test);
registerDeleteScenarios(test);
