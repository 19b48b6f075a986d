/* A plugin of QEMU's: counts how often an emulated program executes each block of instructions.
 *
 *     gcc -shared -fPIC -O2 -o count.so count_instructions.c
 *     qemu-aarch64 -plugin ./count.so -d plugin -D COUNTED PROGRAM
 *
 * COUNTED gets a line for each block: how often, its address, and its instructions in hexadecimal. The few names that it
 * needs of QEMU's plugin interface (version 1) are declared here: Debian has no header of it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;
enum { ADD_U64 = 0 };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int, void *, uint64_t);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
void qemu_plugin_outs(const char *);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

/* A block is executed from its first to its last instruction: nothing that is counted faults within one. */
struct block {
    struct block *next;
    uint64_t executed, address;
    size_t length;
    uint32_t instructions[];
};

static struct block *blocks;

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    size_t length = qemu_plugin_tb_n_insns(tb);
    struct block *block = calloc(1, sizeof *block + length * sizeof block->instructions[0]);
    (void)id;
    if (!block)
        abort();
    block->address = qemu_plugin_tb_vaddr(tb);
    block->length = length;
    for (size_t i = 0; i < length; i++)
        memcpy(&block->instructions[i], qemu_plugin_insn_data(qemu_plugin_tb_get_insn(tb, i)), 4);
    block->next = blocks;
    blocks = block;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, ADD_U64, &block->executed, 1);
}

static void ended(qemu_plugin_id_t id, void *nothing)
{
    (void)id, (void)nothing;
    for (struct block *block = blocks; block; block = block->next) {
        char text[40];
        if (!block->executed)
            continue;
        snprintf(text, sizeof text, "%" PRIu64 " %" PRIx64, block->executed, block->address);
        qemu_plugin_outs(text);
        for (size_t i = 0; i < block->length; i++) {
            snprintf(text, sizeof text, " %08" PRIx32, block->instructions[i]);
            qemu_plugin_outs(text);
        }
        qemu_plugin_outs("\n");
    }
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
    (void)info, (void)argc, (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
