import java.sql.*;
import java.util.*;

/** What JDBC does with the wire, a line for each check: its name, then what came of it. */
public class Jdbc {
    static String column(ResultSet rows, String name) throws SQLException {
        List<String> found = new ArrayList<>();
        while (rows.next()) found.add(rows.getString(name));
        return String.join(",", found);
    }

    static String keys(ResultSet rows, String... names) throws SQLException {
        List<String> found = new ArrayList<>();
        while (rows.next()) {
            List<String> parts = new ArrayList<>();
            for (String name : names) parts.add(rows.getString(name));
            found.add(String.join(".", parts));
        }
        return String.join(",", found);
    }

    public static void main(String[] arguments) throws Exception {
        Properties login = new Properties();
        login.setProperty("user", arguments[2]);
        login.setProperty("password", arguments[3]);
        try (Connection connection = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + arguments[0] + "/" + arguments[1], login)) {
            DatabaseMetaData about = connection.getMetaData();
            System.out.println("tables " + column(about.getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME"));
            System.out.println("columns " + column(about.getColumns(null, "public", "visits", "%"), "TYPE_NAME"));
            System.out.println("remarks " + column(about.getColumns(null, "public", "visits", "code"), "REMARKS"));
            System.out.println("schemas " + column(about.getSchemas(), "TABLE_SCHEM"));
            System.out.println("keys " + keys(about.getPrimaryKeys(null, "public", "visits"), "TABLE_NAME", "COLUMN_NAME"));
            System.out.println("imported " + keys(about.getImportedKeys(null, "public", "visits"), "FKCOLUMN_NAME", "PKTABLE_NAME", "PKCOLUMN_NAME"));
            System.out.println("exported " + keys(about.getExportedKeys(null, "public", "visits"), "PKCOLUMN_NAME", "FKTABLE_NAME", "FKCOLUMN_NAME"));
            System.out.println("described_tables " + column(about.getTables(null, "public", "clinics", new String[] {"TABLE"}), "REMARKS"));
            Statement simple = connection.createStatement();
            ResultSet rows = simple.executeQuery("SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex ORDER BY sex");
            System.out.println("simple " + column(rows, "n"));
            System.out.println("warned " + simple.getWarnings().getMessage().lines().findFirst().get());
            PreparedStatement prepared =
                connection.prepareStatement("SELECT COUNT(*) AS n, AVG(birth_year) AS y FROM patients WHERE birth_year > ? AND sex = ?");
            Set<String> same = new LinkedHashSet<>();
            for (int times = 0; times < 8; times++) { // from the sixth on it is a named statement, and values are binary
                prepared.setInt(1, 1950);
                prepared.setString(2, "f");
                ResultSet one = prepared.executeQuery();
                one.next();
                same.add(one.getLong(1) + ":" + one.getDouble(2));
            }
            System.out.println("prepared " + String.join(",", same));
            PreparedStatement dated = connection.prepareStatement("SELECT COUNT(DISTINCT patient_id) AS n FROM visits WHERE day >= ?");
            dated.setDate(1, java.sql.Date.valueOf("2025-01-01"));
            System.out.println("date " + column(dated.executeQuery(), "n"));
            ResultSetMetaData columns = connection.prepareStatement("SELECT sex, AVG(birth_year) AS y FROM patients GROUP BY sex").getMetaData();
            System.out.println("described " + columns.getColumnTypeName(1) + "," + columns.getColumnTypeName(2));
            connection.setAutoCommit(false);
            Statement piecewise = connection.createStatement();
            piecewise.setFetchSize(2);
            System.out.println("fetched " + column(piecewise.executeQuery("SELECT region, COUNT(*) AS n FROM patients GROUP BY region"), "region").split(",").length);
            try {
                piecewise.executeQuery("SELECT * FROM visits");
            } catch (SQLException refused) {
                System.out.println("refused " + refused.getSQLState());
            }
            connection.rollback();
            System.out.println("valid " + connection.isValid(5) + "," + connection.getSchema());
        }
        try (Connection connection = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + arguments[0] + "/" + arguments[1] + "?" + arguments[4], login)) {
            ResultSetMetaData columns = connection.createStatement().executeQuery("SELECT COUNT(*) AS n FROM patients").getMetaData();
            System.out.println("optioned " + columns.getColumnName(2) + "," + columns.getColumnName(3));
        }
    }
}
