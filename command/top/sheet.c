/* SPDX-License-Identifier: MIT */
#include "sheet.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool sheet_init(struct sheet *sheet, int rows, int cols, bool ascii)
{
    *sheet = (struct sheet){rows, cols, ascii, malloc((size_t)rows * (size_t)cols * sizeof *sheet->cell)};
    if (sheet->cell == NULL)
        return false;
    for (int row = 0; row < rows; row++)
        sheet_row(sheet, row, STYLE_PLAIN);
    return true;
}

void sheet_fini(struct sheet *sheet)
{
    free(sheet->cell);
    sheet->cell = NULL;
}

static void set(struct sheet *sheet, int row, int col, enum style style, const char *text, size_t size)
{
    if (row < 0 || row >= sheet->rows || col < 0 || col >= sheet->cols)
        return;
    struct cell *cell = &sheet->cell[row * sheet->cols + col];
    memcpy(cell->text, text, size);
    cell->text[size] = '\0';
    cell->style = (uint8_t)style;
}

int sheet_put(struct sheet *sheet, int row, int col, enum style style, const char *format, ...)
{
    char text[1280];
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    for (const char *at = text; *at != '\0'; at++)
        set(sheet, row, col++, style, at, 1);
    return col;
}

void sheet_block(struct sheet *sheet, int row, int col, enum style style, int eighths)
{
    static const char blocks[][4] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char plain[] = " ..::||##";
    if (sheet->ascii)
        set(sheet, row, col, style, &plain[eighths], 1);
    else
        set(sheet, row, col, style, blocks[eighths], strlen(blocks[eighths]));
}

void sheet_row(struct sheet *sheet, int row, enum style style)
{
    for (int col = 0; col < sheet->cols; col++)
        set(sheet, row, col, style, " ", 1);
}

/* Returns the number of cells before the blanks at the end of a row. */
static int filled(const struct sheet *sheet, int row)
{
    int end = sheet->cols;
    while (end > 0 && strcmp(sheet->cell[row * sheet->cols + end - 1].text, " ") == 0)
        end--;
    return end;
}

void sheet_print(const struct sheet *sheet, FILE *out)
{
    int rows = sheet->rows;
    while (rows > 0 && filled(sheet, rows - 1) == 0)
        rows--;
    for (int row = 0; row < rows; row++) {
        for (int col = 0; col < filled(sheet, row); col++)
            fputs(sheet->cell[row * sheet->cols + col].text, out);
        fputc('\n', out);
    }
}
