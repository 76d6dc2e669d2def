// Quasar's table with cells as their columns say (row_tables.py). One component draws all cells: templates in slots are
// mounted anew whenever anything on the page changes, and a link or button in them then loses the keyboard's focus.
export default {
  template: `
    <q-table :columns="shown" :table-row-class-fn="rowClass">
      <template #body-cell="cell">
        <q-td :props="cell" @mouseenter="points && $emit('point', cell.row.id)">
          <svg v-if="cell.col.kind === 'curve'" viewBox="0 0 100 24" width="100" height="24" role="img"
            :aria-label="cell.value ? 'Prices paid over 24 hours' : 'No sales'">
            <polyline :points="cell.value" fill="none" stroke="var(--ramp-mark)" stroke-width="2" />
          </svg>
          <a v-else-if="cell.col.link" :href="cell.col.link + encodeURIComponent(cell.row.id)">{{ text(cell) }}</a>
          <template v-else-if="cell.col.picks">
            <button v-if="cell.value" type="button" class="ramp-pick" @click="$emit('pick', cell.row.id)">
              {{ text(cell) }}
            </button>
          </template>
          <time v-else-if="cell.col.kind === 'time'" :title="utc(cell)">{{ text(cell) }}</time>
          <span v-else-if="cell.col.kind === 'verdict'" :class="verdictClass(cell.value)">{{ cell.value }}</span>
          <template v-else>{{ text(cell) }}</template>
        </q-td>
      </template>
    </q-table>
  `,
  props: {columns: Array, marked: String, points: Boolean},
  emits: ['pick', 'point'],
  computed: {
    shown() {
      const words = {sort: ramp.naturally};
      return this.columns.map((column) => ({...column, ...(column.kind in ramp ? {format: ramp[column.kind]} : words)}));
    },
  },
  methods: {
    text: (cell) => cell.row['t' + cell.col.name] ?? cell.value,
    utc(cell) {
      const moment = cell.row[cell.col.name];
      return moment == null ? null : new Date(moment).toISOString().slice(0, 19).replace('T', ' ') + ' UTC';
    },
    verdictClass: (verdict) => ({agrees: 'ramp-good', DIFFERS: 'ramp-bad'})[verdict.split(' ')[0]] ?? 'ramp-quiet',
    rowClass(row) {
      return this.marked && row.id === this.marked ? 'ramp-marked' : '';
    },
  },
};
