import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { temporaryDirectory } from '@keelson/test-support';
import test from 'ava';
import { readMachineInfo } from '../../../src/machine/stats/machine-info.ts';

test('machine information is read from procfs and sysfs', async (t) => {
  const root = await temporaryDirectory(t);
  const files = {
    'etc/machine-id': 'm1\n',
    'proc/sys/kernel/random/boot_id': 'b1\n',
    'proc/self/mounts': `proc /proc proc rw 0 0\n/dev/vda1 ${root.replaceAll(' ', '\\040')} ext4 rw 0 0\n/dev/vda1 /elsewhere ext4 rw 0 0\n/dev/gone /nowhere ext4 rw 0 0\n`,
    'sys/class/dmi/id/product_uuid': 'S1\n',
    'sys/block/vda/dev': '254:0\n',
    'sys/block/vda/size': '2048\n',
    'sys/block/vda/queue/scheduler': 'none [mq-deadline]\n',
    'sys/block/loop0/dev': '7:0\n',
    'sys/block/loop0/size': '0\n',
    'sys/class/net/eth0/address': '02:00:00:00:00:01\n',
    'sys/class/net/eth0/speed': '-1\n',
    'sys/class/net/eth0/mtu': '1500\n',
    'sys/class/net/lo/mtu': '65536\n',
    'sys/class/net/veth12/mtu': '1500\n',
    'sys/devices/system/node/node0/meminfo': 'Node 0 MemTotal:       1024 kB\n',
    'sys/devices/system/node/node0/cpu0/x': '',
    'sys/devices/system/node/node0/cpu1/x': '',
    'sys/devices/system/node/node0/cpu2/x': '',
    'sys/devices/system/node/node0/cpumap': '7\n',
    ...Object.fromEntries(
      [0, 0, 1].map((core, cpu) => [`sys/devices/system/cpu/cpu${cpu}/topology/core_id`, `${core}\n`]),
    ),
  };
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  const info = await readMachineInfo({ proc: join(root, 'proc'), sys: join(root, 'sys'), etc: join(root, 'etc') });
  t.like(info, { machine_id: 'm1', system_uuid: 'S1', boot_id: 'b1' });
  t.true(info.num_cores > 0 && info.memory_capacity > 0);
  t.deepEqual(info.disk_map, {
    '254:0': { name: 'vda', major: 254, minor: 0, size: 1_048_576, scheduler: 'mq-deadline' },
  });
  t.deepEqual(info.network_devices, [{ name: 'eth0', mac_address: '02:00:00:00:00:01', speed: 0, mtu: 1500 }]);
  t.deepEqual(info.topology, [
    {
      node_id: 0,
      memory: 1_048_576,
      cores: [
        { core_id: 0, thread_ids: [0, 1] },
        { core_id: 1, thread_ids: [2] },
      ],
    },
  ]);
  t.deepEqual(
    info.filesystems.map(({ device, type, capacity }) => [device, type, capacity > 0]),
    [['/dev/vda1', 'ext4', true]],
    'each device once, and none that cannot be read',
  );
});

test('without procfs and sysfs a machine has its memory and one NUMA node', async (t) => {
  const nowhere = join(await temporaryDirectory(t), 'nowhere');
  const info = await readMachineInfo({ proc: nowhere, sys: nowhere, etc: nowhere });
  t.like(info, { machine_id: '', boot_id: '', filesystems: [], disk_map: {}, network_devices: [] });
  t.deepEqual(info.topology, [{ node_id: 0, memory: info.memory_capacity, cores: [] }]);
});
